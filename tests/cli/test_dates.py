"""Times as people write and read them."""

from __future__ import annotations

import time

import pytest

from toolscout.cli.dates import ago, since, until
from toolscout.errors import InvalidValueError


def test_times_are_read_as_people_write_them() -> None:
    now = time.time()
    assert abs(until("90d", "--expires") - now - 90 * 86_400) < 5
    assert abs(since("2h", "--since") - now + 7_200) < 5
    assert since("2027-01-01", "--since") == 1_798_761_600
    assert since("2027-01-01T02:00:00+02:00", "--since") == 1_798_761_600
    for wrong in ("", "d", "-1d", "1y", "tomorrow", "99999999d"):
        with pytest.raises(InvalidValueError):
            until(wrong, "--expires")


@pytest.mark.parametrize(
    ("distance", "said"),
    [(0, "just now"), (-300, "5 minutes ago"), (-7_200, "2 hours ago"), (86_400 * 3, "in 3 days"), (30, "soon")],
)
def test_times_are_written_for_people(distance: float, said: str) -> None:
    assert ago(1_000_000 + distance, now=1_000_000) == said
    assert ago(None) == "never"
