"""Counters, gauges and histograms, and the text that Prometheus reads. A series that did not change keeps its text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...]
"""The values of a metric's labels, in the order of the labels."""


class Metric:
    """The name of a metric, its kind, its labels, and the text of its series."""

    kind: Kind

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = labels

    def lines(self) -> list[str]:
        """Return the description and the samples, for one join of all metrics: a megabyte is copied once."""
        return [f"# HELP {self.name} {self.meaning}\n# TYPE {self.name} {self.kind}\n", *self._samples()]

    def _samples(self) -> list[str]:
        raise NotImplementedError

    def _head(self, values: Values, *more: tuple[str, str], suffix: str = "") -> str:
        pairs = (*zip(self.labels, values, strict=True), *more)
        text = ",".join(f'{label}="{_escape(value)}"' for label, value in pairs)
        return f"{self.name}{suffix}{{{text}}} " if text else f"{self.name}{suffix} "


class Counter(Metric):
    """A number that only grows, for each combination of label values."""

    kind: Kind = "counter"

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        """Start at 0 if there are no labels. Otherwise a series begins with its first value."""
        super().__init__(name, meaning, *labels)
        self._numbers: dict[Values, float] = {} if labels else {(): 0}
        self._heads: dict[Values, str] = {}

    def add(self, *values: str, by: float = 1) -> None:
        """Count an event."""
        self._numbers[values] = self._numbers.get(values, 0) + by

    @property
    def total(self) -> float:
        """The sum over all combinations of label values."""
        return sum(self._numbers.values())

    def set_all(self, numbers: Mapping[Values, float]) -> None:
        """Take numbers that are counted elsewhere. Series that are not among them end."""
        self._numbers = dict(numbers)

    def _samples(self) -> list[str]:
        heads = self._heads
        for values in self._numbers.keys() - heads.keys():
            heads[values] = self._head(values)
        return [f"{heads[values]}{number}\n" for values, number in self._numbers.items()]


class Gauge(Counter):
    """A number that goes up and down. It is read when the text is asked for."""

    kind: Kind = "gauge"


class Histogram(Metric):
    """How often something took how long, for each combination of label values."""

    kind: Kind = "histogram"

    def __init__(self, name: str, meaning: str, *labels: str, buckets: tuple[float, ...]) -> None:
        """Take the upper bounds of the buckets in seconds, ascending."""
        super().__init__(name, meaning, *labels)
        self._buckets = buckets
        self._series: dict[Values, _Series] = {}

    def observe(self, seconds: float, *values: str) -> None:
        """Record a duration."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = _Series(self._template(values), len(self._buckets) + 1)
        series.counts[bisect_left(self._buckets, seconds)] += 1
        series.sum += seconds
        series.text = ""

    def _template(self, values: Values) -> str:
        bounds = (*map(str, self._buckets), "+Inf")
        heads = [self._head(values, ("le", bound), suffix="_bucket") for bound in bounds]
        heads += [self._head(values, suffix="_sum"), self._head(values, suffix="_count")]
        return "".join(f"{head.replace('%', '%%')}%s\n" for head in heads)

    def _samples(self) -> list[str]:
        return [series.text or series.write() for series in self._series.values()]


class _Series:
    """The counts of one histogram for one combination of label values, and their text until they change."""

    __slots__ = ("counts", "sum", "template", "text")

    def __init__(self, template: str, buckets: int) -> None:
        self.template = template
        self.counts = [0] * buckets
        self.sum = 0.0
        self.text = ""

    def write(self) -> str:
        """Write the text, and remember it."""
        totals = tuple(accumulate(self.counts))
        self.text = self.template % (*totals, self.sum, totals[-1])
        return self.text


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
