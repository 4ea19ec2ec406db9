"""The page of the REST API names every endpoint, and says rightly whom it is for."""

from __future__ import annotations

import re

from pages import ROOT
from toolscout import Scout, Settings
from toolscout.api import RestApi
from toolscout.api.app import PREFIX

_ROW = re.compile(r"^\| `(\w+) (/\S+)` \| (all|operators) \|", re.M)


async def test_every_endpoint_is_documented_and_no_other():
    import httpx2

    settings = Settings(store="memory:", embedder="none")
    async with Scout.open(settings=settings) as scout:
        transport = httpx2.ASGITransport(app=RestApi(scout, settings, authenticated=False).app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            paths = (await client.get(f"{PREFIX}/openapi.json")).json()["paths"]
    served = {(method.upper(), path.removeprefix(PREFIX)) for path, methods in paths.items() for method in methods}
    rows = _ROW.findall((ROOT / "docs" / "rest.md").read_text("utf-8"))
    assert {(method, path) for method, path, _ in rows} == served
