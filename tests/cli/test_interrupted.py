"""Ctrl-C: the command says what happened to its work, and exits with 130."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from downstreams import until
from servers import stdio
from serving import write_config

pytestmark = pytest.mark.process

HANGS = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch(); sys.stdin.read()"


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("index", "interrupted; nothing unfinished was published\n"),
        ("call", "interrupted; if the call was sent, it may still take effect\n"),
        ("doctor", "interrupted\n"),
    ],
)
def test_an_interrupted_verb_says_what_became_of_its_work(
    toolscout: Callable[..., Any], tmp_path: Path, verb: str, said: str
) -> None:
    started, store = tmp_path / "started", f"sqlite:///{tmp_path / 'catalogue.db'}"
    config = write_config(tmp_path, stdio("hangs", sys.executable, "-c", HANGS, str(started)))
    key = ["hangs__x"] if verb == "call" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "toolscout", verb, *key, "--config", str(config), "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    asyncio.run(until(started.exists))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", said)
    if verb == "doctor":
        assert not (tmp_path / "catalogue.db").exists()
    else:
        assert toolscout("list", "--store", store, "--json").json["tools"] == []
