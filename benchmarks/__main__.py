"""`python -m benchmarks`: every benchmark, one after the other."""

from __future__ import annotations

import asyncio

from benchmarks import console, trust, turns
from benchmarks.gateway import auth, echo, rest, telemetry
from benchmarks.quality import __main__ as quality
from benchmarks.quality import languages, long_messages, needs, people, resistance
from benchmarks.registry import attach
from benchmarks.scale import __main__ as scale
from benchmarks.speed import catalogue, growth

asyncio.run(quality.main([]))
asyncio.run(resistance.main(list(resistance.SETS), resistance.QUERIES))
asyncio.run(people.main())
long_messages.main()
asyncio.run(languages.main())
asyncio.run(needs.main())
catalogue.main()
rest.main()
console.main()
asyncio.run(growth.measure(growth.SIZES[-1]))
asyncio.run(echo.measure())
asyncio.run(auth.measure())
asyncio.run(telemetry.measure())
asyncio.run(attach.measure())
asyncio.run(turns.measure())
trust.main()
asyncio.run(scale.main(list(scale.SIZES), list(scale.TENANTS)))
