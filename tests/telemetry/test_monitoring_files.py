"""What the page, the alert rules and the dashboard say of metrics and spans is what there is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from guarantees import guarantee
from toolscout.telemetry import Metrics

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
FOLDER = ROOT / "deploy" / "monitoring"
METRICS = {metric.name: metric for metric in Metrics().all()}
ADDED = {"le", "instance", "job"}
"""Labels that the format of histograms and Prometheus itself add."""


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"]
    return list(group["rules"])


def panels() -> list[dict[str, Any]]:
    return list(json.loads((FOLDER / "dashboard.json").read_text("utf-8"))["panels"])


def queries() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    for panel in panels():
        yield from (target["expr"].replace("$__rate_interval", "5m") for target in panel["targets"])


def selectors(node: Any) -> Iterator[Any]:
    """Yield every selector of a metric in a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "args", "param"):
        found = getattr(node, name, None)
        for item in found if isinstance(found, list) else [found]:
            if item is not None:
                yield from selectors(item)


@guarantee("docs:complete")
def test_the_page_lists_every_metric_with_its_kind_and_its_labels():
    rows = re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \| ([^|]*?) ?\|", PAGE, re.M)
    listed = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert listed == {metric.name: (metric.kind, metric.labels) for metric in METRICS.values()}


def test_names_of_metrics_follow_the_conventions_of_prometheus():
    for name, metric in METRICS.items():
        assert name.endswith("_total") == (metric.kind == "counter")
        assert name.endswith("_seconds") or metric.kind != "histogram"
        assert metric.meaning.endswith(".")


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_metric_and_label_of_a_query_exists(query):
    found = list(selectors(promql_parser.parse(query)))
    assert found
    labels = set(ADDED)
    for selector in found:
        metric = METRICS.get(selector.name) or METRICS[re.sub(r"_(bucket|sum|count)$", "", selector.name)]
        assert (metric.kind == "histogram") == (metric.name != selector.name)
        assert {matcher.name for matcher in selector.matchers.matchers} <= {*metric.labels, *ADDED}
        labels |= set(metric.labels)
    grouped = re.findall(r"(?:by|on|ignoring) \(([^)]*)\)", query)
    assert {name.strip() for names in grouped for name in names.split(",")} <= labels


def test_every_alert_says_what_to_do_and_is_on_the_page():
    alerts = {rule["alert"] for rule in rules()}
    assert alerts == set(re.findall(r"^\| `(Toolscout\w+)` \|", PAGE, re.M))
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "action"}
        assert re.fullmatch(r"\d+[mh]", rule["for"])


def test_the_dashboard_shows_every_metric_once_placed_without_overlap():
    text = json.dumps(panels())
    assert [name for name in METRICS if name not in text and name != "toolscout_info"] == []
    places: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & places
        assert at["x"] + at["w"] <= 24
        places |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


@guarantee("docs:complete")
def test_the_page_lists_every_span():
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "span":
                named |= {item.value for item in node.args[:1] if isinstance(item, ast.Constant)}
    assert len(named) >= 6
    assert {name.split()[0] for name in re.findall(r"^\| `([^`]+)`[^|]*\| (?:internal) \|", PAGE, re.M)} == named
