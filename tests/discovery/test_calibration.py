"""From strengths to scores: how likely each hit is right, and the word for it."""

from __future__ import annotations

import numpy as np
import pytest

from toolscout.discovery.calibration import FIRST, FIRST_BY_WORDS, LIKELY, STRONG, calibrate, fit_of
from toolscout.discovery.fusion import Evidence, fuse


def _evidence(cosine: list[float] | None, impacts: list[list[float]], *, visible: int = 100) -> Evidence:
    impact = np.array(impacts, dtype=np.float32)
    count = impact.shape[1]
    return Evidence(
        cosine=None if cosine is None else np.array([cosine], dtype=np.float32),
        impact=impact,
        frequency=(impact > 0).sum(axis=1),
        visible=visible,
        intent_terms=np.ones((1, len(impact)), dtype=np.bool_),
        intent_action=np.zeros(1, dtype=np.int64),
        other_action=np.zeros(1, dtype=np.int64),
        several_needs=False,
        actions=np.zeros(count, dtype=np.int64),
        server=np.zeros((1, count), dtype=np.bool_),
        exact=np.zeros(count, dtype=np.bool_),
    )


@pytest.mark.parametrize("cosine", [[0.8, 0.5, 0.5, 0.1], None])
def test_the_order_of_the_scores_is_the_order_of_the_strengths(cosine: list[float] | None) -> None:
    evidence = _evidence(cosine, [[0.7, 0.4, 0.4, 0.0], [0.5, 0.0, 0.0, 0.2]])
    fusion = fuse(evidence)
    scores = calibrate(evidence, fusion).score
    assert np.argsort(-scores, kind="stable").tolist() == np.argsort(-fusion.strength, kind="stable").tolist()
    assert scores[1] == scores[2]
    assert 0 <= scores.min() <= scores.max() <= 1


@pytest.mark.parametrize("near", [[0.85, 0.3], None])
def test_a_near_tool_that_has_every_word_is_a_strong_hit(near: list[float] | None) -> None:
    evidence = _evidence(near, [[0.8, 0.0], [0.8, 0.0], [0.7, 0.1]])
    assert fit_of(calibrate(evidence, fuse(evidence)).first) == "strong"


@pytest.mark.parametrize("near", [[0.3, 0.29], None])
def test_a_hit_is_weak_where_nothing_is_near_and_no_word_is_known(near: list[float] | None) -> None:
    evidence = _evidence(near, [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    calibration = calibrate(evidence, fuse(evidence))
    assert fit_of(calibration.first) == "weak"


def test_a_hit_that_has_no_vector_yet_is_judged_by_its_words() -> None:
    evidence = _evidence([0.0, 0.12], [[0.8, 0.0], [0.8, 0.0]])
    calibration = calibrate(evidence, fuse(evidence))
    assert calibration.first > 0.2


def test_without_candidates_there_is_no_score() -> None:
    evidence = _evidence([], [[]])
    calibration = calibrate(evidence, fuse(evidence))
    assert (calibration.first, len(calibration.score)) == (0.0, 0)


def test_the_words_go_by_the_score() -> None:
    assert [fit_of(score) for score in (1.0, STRONG, LIKELY, LIKELY - 0.01, 0.0)] == [
        "strong",
        "strong",
        "likely",
        "weak",
        "weak",
    ]


def test_a_contradicting_verb_counts_against_a_hit_and_a_lead_counts_for_it() -> None:
    assert FIRST["contradicts"] < 0
    assert FIRST_BY_WORDS["contradicts"] < 0
    assert min(FIRST["strength"], FIRST["lead"]) > 0
