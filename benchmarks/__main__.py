"""`python -m benchmarks`: every benchmark, one after the other."""

from __future__ import annotations

import asyncio

from benchmarks.gateway import echo
from benchmarks.quality import __main__ as quality
from benchmarks.quality import languages, needs, resistance
from benchmarks.speed import catalogue, growth

asyncio.run(quality.main([]))
asyncio.run(resistance.main(list(resistance.SETS), resistance.QUERIES))
asyncio.run(languages.main())
asyncio.run(needs.main())
catalogue.main()
asyncio.run(growth.measure(growth.SIZES[-1]))
asyncio.run(echo.measure())
