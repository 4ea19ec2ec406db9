"""Tool definitions, read from a mapping or an SDK tool, and checked for search and calls."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import Tool as SdkTool
from pydantic import BaseModel, ValidationError

from toolscout.errors import BadToolError
from toolscout.models import LOCAL, Server, Tool
from toolscout.scout import normalize_tool
from toolscout.settings import Settings

SERVER = Server(key=LOCAL, title=LOCAL)
"""The server that all tools of a registry have in its catalogue."""

_SNAKE = {
    "input_schema": "inputSchema",
    "output_schema": "outputSchema",
    "meta": "_meta",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """One tool as the SDK lists it and as the catalogue stores it. Its key is its plain name."""

    sdk: SdkTool
    tool: Tool

    @property
    def name(self) -> str:
        """The name that search shows and a call takes."""
        return self.tool.name


def clean_name(name: str) -> str:
    """Return a name as the catalogue stores it: NFC, valid UTF-8, stripped of spaces."""
    return unicodedata.normalize("NFC", name).encode("utf-8", "replace").decode("utf-8").strip()


def read_definition(raw: Any, settings: Settings, *, name: str | None = None, keywords: Any = ()) -> ToolDefinition:
    """Read a mapping or an SDK tool. `name` replaces its own name. Raise BadToolError if it cannot be used."""
    if isinstance(raw, BaseModel):
        raw = raw.model_dump(by_alias=True, mode="json", exclude_none=True)
    if not isinstance(raw, Mapping):
        raise BadToolError(f"a definition must be a mapping or an SDK tool, not {type(raw).__name__}")
    fields: dict[str, Any] = {_SNAKE.get(str(key), str(key)): value for key, value in raw.items()}
    fields["name"] = name or fields.get("name")
    if fields.get("inputSchema") is None:
        fields["inputSchema"] = {"type": "object"}
    if keywords:
        fields["keywords"] = list(keywords)
    tool = normalize_tool(fields, SERVER, settings)
    try:
        sdk = SdkTool.model_validate({**fields, "name": tool.name})
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise BadToolError(f"its {path} cannot be used: {first['msg']}") from None
    return ToolDefinition(sdk=sdk, tool=replace(tool, key=tool.name))
