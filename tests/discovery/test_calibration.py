"""From strengths to scores: whether anything fits, and how likely each hit is right."""

from __future__ import annotations

import numpy as np
import pytest

from toolscout.discovery.calibration import FITS, SHARE, calibrate
from toolscout.discovery.fusion import Evidence, fuse


def _evidence(cosine: list[float] | None, held: list[list[float]], *, visible: int = 100) -> Evidence:
    impact = np.array(held, dtype=np.float32)
    count = impact.shape[1]
    return Evidence(
        cosine=None if cosine is None else np.array([cosine], dtype=np.float32),
        impact=impact,
        frequency=(impact > 0).sum(axis=1),
        visible=visible,
        intent_terms=np.ones((1, len(impact)), dtype=np.bool_),
        intent_action=np.zeros(1, dtype=np.uint8),
        several_needs=False,
        actions=np.zeros(count, dtype=np.uint8),
        server=np.zeros((1, count), dtype=np.bool_),
        exact=np.zeros(count, dtype=np.bool_),
    )


@pytest.mark.parametrize("cosine", [[0.8, 0.5, 0.5, 0.1], None])
def test_the_order_of_the_scores_is_the_order_of_the_strengths(cosine: list[float] | None) -> None:
    evidence = _evidence(cosine, [[0.7, 0.4, 0.4, 0.0], [0.5, 0.0, 0.0, 0.2]])
    fused = fuse(evidence)
    found = calibrate(evidence, fused)
    assert np.argsort(-found.score, kind="stable").tolist() == np.argsort(-fused.strength, kind="stable").tolist()
    assert found.score[1] == found.score[2]
    assert 0 <= found.score.min() <= found.score.max() <= found.fits <= 1


@pytest.mark.parametrize("near", [[0.85, 0.3], None])
def test_a_near_tool_that_holds_every_word_fits(near: list[float] | None) -> None:
    evidence = _evidence(near, [[0.8, 0.0], [0.8, 0.0], [0.7, 0.1]])
    found = calibrate(evidence, fuse(evidence))
    assert found.enough
    assert found.fits > 0.5


@pytest.mark.parametrize("near", [[0.15, 0.14], None])
def test_nothing_fits_where_nothing_is_near_and_not_a_word_is_known(near: list[float] | None) -> None:
    evidence = _evidence(near, [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    assert not calibrate(evidence, fuse(evidence)).enough


def test_the_nearest_vector_of_nonsense_is_asked_for_more_than_that_of_known_words() -> None:
    strange = _evidence([0.32, 0.2], [[0.0, 0.0], [0.0, 0.0]])
    known = _evidence([0.32, 0.2], [[0.2, 0.0], [0.0, 0.0]])
    assert [calibrate(one, fuse(one)).enough for one in (strange, known)] == [False, True]


def test_a_hit_that_has_no_vector_yet_is_judged_by_its_words() -> None:
    evidence = _evidence([0.0, 0.12], [[0.8, 0.0], [0.8, 0.0]])
    assert calibrate(evidence, fuse(evidence)).enough


def test_without_candidates_nothing_fits() -> None:
    evidence = _evidence([], [[]])
    found = calibrate(evidence, fuse(evidence))
    assert (found.fits, found.enough, len(found.score)) == (0.0, False, 0)


def test_every_weight_points_where_it_should() -> None:
    assert min(FITS[name] for name in ("strength", "lead", "cosine")) > 0
    assert min(SHARE["gap"], SHARE["lead"]) > 0
