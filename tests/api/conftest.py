"""A REST API in front of scripted servers of two tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from guarded import Guarded, guarded
from rest_servers import crm
from scripted import Scripted

OpenRest = Callable[..., AbstractAsyncContextManager[Guarded]]


@pytest.fixture
def open_rest() -> OpenRest:
    """Return a function that serves the tools of the tenants acme and zeta."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Guarded]:
        hr = Scripted("hr")
        hr.tool("list_staff", description="List the staff of the company")
        async with guarded({"acme": [crm()], "zeta": [hr]}, rest=True, **options) as served:
            yield served

    return opened
