"""The figures of the README are those of the result files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pages import ROOT

README = (ROOT / "README.md").read_text("utf-8")
STYLES = ("all", "agent", "user", "paraphrase", "multi", "typo", "lang")
SETS = ("azure_mcp", "livemcp_step", "metatool_single", "stabletoolbench", "sealtools", "bfcl_synth")


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def row(label: str) -> list[float]:
    """Return the numbers of the README's table row that begins with a label."""
    (line,) = re.findall(rf"^\| {re.escape(label)} \|(.*)\|$", README, re.MULTILINE)
    return [float(cell.strip(" *")) for cell in line.split("|")]


@pytest.mark.parametrize(
    ("label", "kind", "figure"),
    [
        ("nDCG@10", "strict", "ndcg@10"),
        ("a right tool is among the first 5", "lenient", "shown@5"),
        ("empty answers", "strict", "empty"),
    ],
)
def test_requests_as_people_write_them_have_the_measured_figures(label: str, kind: str, figure: str) -> None:
    people = results("people")["people"]
    assert row(label) == [pytest.approx(people[style][kind][figure], abs=0.00051) for style in STYLES]


def test_the_public_sets_have_the_measured_figures() -> None:
    public = results("people")["public"]
    figures = [public[name]["ndcg@10"] for name in SETS]
    shown = row("`hybrid`")
    assert shown == [pytest.approx(figure, abs=0.00051) for figure in (*figures, sum(figures) / len(figures))]
