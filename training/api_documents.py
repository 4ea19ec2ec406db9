"""Honest definitions with long texts: operations of public web APIs, as the vendors describe them.

    pip download --no-deps -d build/api botocore google-api-python-client

Both packages (Apache-2.0) hold the descriptions of some hundred services each. Servers are often made from such
descriptions, and few of the public catalogues hold servers of this kind.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

OPERATIONS = 15
"""How many operations of each service are taken."""
PARAMETERS = 12
"""How many parameters of each operation are taken."""

_MARKUP = re.compile(r"<[^>]*>")
_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_api_documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield operations as rows of tools, with their service as the server."""
    chance = random.Random(11)
    for wheel in sorted(folder.glob("*.whl")):
        with ZipFile(wheel) as archive:
            names = archive.namelist()
            latest = {name.split("/")[2]: name for name in sorted(names) if name.endswith("/service-2.json.gz")}
            for service, name in latest.items():
                document = json.loads(gzip.decompress(archive.read(name)))
                yield from _choose(chance, list(_of_service_model(f"aws {service}", document)))
            latest = {
                name.split("/")[-1].split(".")[0]: name
                for name in sorted(names)
                if "/discovery_cache/documents/" in name
            }
            for service, name in latest.items():
                if name.endswith(".json"):
                    yield from _choose(chance, list(_of_discovery(f"google {service}", json.loads(archive.read(name)))))


def _choose(chance: random.Random, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return chance.sample(operations, min(OPERATIONS, len(operations)))


def _of_service_model(service: str, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    shapes = document["shapes"]
    for name, operation in document["operations"].items():
        shape = shapes.get(operation.get("input", {}).get("shape"), {})
        members = list(shape.get("members", {}).items())[:PARAMETERS]
        parameters = {key: member.get("documentation", "") for key, member in members}
        yield _row(service, name, operation.get("documentation", ""), parameters)


def _of_discovery(service: str, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    schemas = document.get("schemas", {})
    pending = [document]
    while pending:
        part = pending.pop()
        pending.extend(part.get("resources", {}).values())
        for method in part.get("methods", {}).values():
            parameters = {key: value.get("description", "") for key, value in method.get("parameters", {}).items()}
            body = schemas.get(method.get("request", {}).get("$ref"), {})
            parameters |= {key: value.get("description", "") for key, value in body.get("properties", {}).items()}
            yield _row(
                service, method["id"], method.get("description", ""), dict(list(parameters.items())[:PARAMETERS])
            )


def _row(service: str, name: str, description: str, parameters: dict[str, str]) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": _plain(text)} for key, text in parameters.items()}
    return {
        "server": service,
        "name": _WORD_BREAK.sub("_", name).replace(".", "_").lower(),
        "description": _plain(description),
        "input_schema": {"type": "object", "properties": properties},
    }


def _plain(text: str) -> str:
    return " ".join(html.unescape(_MARKUP.sub(" ", text)).split())
