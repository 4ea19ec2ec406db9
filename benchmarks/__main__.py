"""`python -m benchmarks`: every benchmark, one after the other."""

from __future__ import annotations

import asyncio

from benchmarks import trust, turns
from benchmarks.gateway import echo
from benchmarks.quality import sets
from benchmarks.registry import attach
from benchmarks.scale import __main__ as scale
from benchmarks.speed import catalogue, growth

asyncio.run(sets.measure())
catalogue.main()
asyncio.run(growth.measure(growth.SIZES[-1]))
asyncio.run(echo.measure())
asyncio.run(attach.measure())
asyncio.run(turns.measure())
trust.main()
asyncio.run(scale.main(list(scale.SIZES), list(scale.TENANTS)))
