"""The metrics of a gateway, as Prometheus reads them."""

from __future__ import annotations

import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

WAIT_S = 30.0


def scrape(port: int) -> str:
    """Read the metrics of the gateway whose diagnostics are on a port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as answer:
        return str(answer.read().decode())


def samples(text: str) -> dict[str, float]:
    """Return every sample, by its name and its labels in order, as in `toolscout_calls_total{outcome=ok,server=x}`."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def until_indexed(port: int, tools: int) -> None:
    """Wait until so many tools are in the catalogue of a gateway."""
    ends = time.monotonic() + WAIT_S
    while samples(scrape(port))["toolscout_tools"] != tools:
        assert time.monotonic() < ends, scrape(port)
        time.sleep(0.05)
