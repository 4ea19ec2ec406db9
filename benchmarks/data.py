"""Where the labelled sets are, and where results go."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SETS = ("azure_mcp", "livemcp_step", "metatool_single", "stabletoolbench", "sealtools", "bfcl_synth")


def bench_folder() -> Path:
    """Return the folder of labelled sets, or say how to name it."""
    named = os.environ.get("TOOLSCOUT_BENCH")
    if not named or not Path(named).is_dir():
        raise SystemExit(
            "TOOLSCOUT_BENCH must name the folder of labelled sets (each with tools.jsonl and queries.jsonl)."
        )
    return Path(named)


def rows(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def machine() -> dict[str, Any]:
    """Say what the figures were measured on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def save(name: str, value: dict[str, Any], table: str) -> None:
    """Write a result as JSON for programs and as Markdown for people."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n", "utf-8")
    (RESULTS / f"{name}.md").write_text(table + "\n", "utf-8")
    print(table)


def markdown(head: list[str], body: list[list[Any]]) -> str:
    """Write a table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in body]
    return "\n".join(lines)
