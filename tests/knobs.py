"""Environment variables that change how much the tests do; CONTRIBUTING.md has the table.

They are read here, at import: a fixture removes every `TOOLSCOUT_*` variable before the first test.
"""

from __future__ import annotations

import os

CASES = int(os.environ.get("TOOLSCOUT_TEST_CASES", "0"))
KILLS = int(os.environ.get("TOOLSCOUT_TEST_KILLS", "0"))
SLOW = bool(os.environ.get("TOOLSCOUT_TEST_SLOW"))
SCREENSHOTS = os.environ.get("TOOLSCOUT_TEST_SCREENSHOTS", "")
POSTGRES = os.environ.get("TOOLSCOUT_TEST_POSTGRES", "")


def cases(default: int) -> int:
    """Return how many malformed requests a test generates."""
    return CASES or default


def kills(default: int) -> int:
    """Return how often a test kills a writer with SIGKILL. Both stores together make the 100 of `store:kill9`."""
    return KILLS or default
