"""`python -m benchmarks`: every benchmark, one after the other."""

from __future__ import annotations

import asyncio

from benchmarks.gateway import auth, echo
from benchmarks.quality import sets
from benchmarks.registry import attach
from benchmarks.speed import catalogue, growth

asyncio.run(sets.measure())
catalogue.main()
asyncio.run(growth.measure(growth.SIZES[-1]))
asyncio.run(echo.measure())
asyncio.run(auth.measure())
asyncio.run(attach.measure())
