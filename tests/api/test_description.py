"""The description that is served is complete and true: fuzzed requests and a generated client find no deviation."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from knobs import cases

BIN = Path(sys.executable).parent
EXAMPLES = max(cases(10_000) // 2_000, 1)


async def run(*command: str | Path, **options: Any) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, **options
    )
    output = (await process.communicate())[0].decode("utf-8", "replace")
    assert process.returncode == 0, output[-8_000:]
    return output


# A well-formed request may name what there is not, so not every one is accepted. A stream of events has no end.
@pytest.mark.process
@pytest.mark.fuzz
async def test_no_fuzzed_request_finds_a_deviation_from_the_description(open_rest, tmp_path):
    async with open_rest(config=tmp_path / "mcp.json") as served:
        url = served.url.removesuffix("/mcp") + "/api/v1/openapi.json"
        await run(
            BIN / "schemathesis",
            "run",
            url,
            "--header",
            f"Authorization: Bearer {await served.operator()}",
            "--max-examples",
            str(EXAMPLES),
            "--seed",
            "1",
            "--exclude-operation-id",
            "follow_events",
            "--exclude-checks",
            "positive_data_acceptance",
            "--no-color",
            cwd=tmp_path,
        )
    assert json.loads((tmp_path / "mcp.json").read_text())["mcpServers"], "no fuzzed request wrote a server"


async def test_each_described_query_parameter_is_known_and_no_other(open_rest, tmp_path):
    async with open_rest(config=tmp_path / "mcp.json") as served:
        token = await served.operator()
        described = (await served.rest(token, "GET", "/openapi.json")).json()["paths"]
        for path, operations in described.items():
            described_here = operations.get("get", {}).get("parameters", ())
            names = sorted(item["name"] for item in described_here if item["in"] == "query")
            if not names:
                continue
            query = "&".join(f"{name}=x" for name in [*names, "nosuch"])
            refused = await served.rest(token, "GET", f"{path}?{query}")
            assert refused.status_code == 422
            assert "nosuch: there is no such parameter" in refused.text
            assert f"this endpoint has {', '.join(names)}" in refused.text


USE_CLIENT = """
import sys
from toolscout_client import AuthenticatedClient
from toolscout_client.api.discovery import list_tools, search
from toolscout_client.api.tools import call_tool, get_tool
from toolscout_client.models import CallBody, CallBodyArguments, ListToolsSort, Problem, SearchBody

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
found = search.sync(client=client, body=SearchBody(query="list customers", limit=1))
assert found.tools[0].key == "crm__list_customers", found
listed = list_tools.sync(client=client, sort=ListToolsSort("-name"), page_size=2)
assert (len(listed.tools), listed.pagination.total_tools) == (2, 5), listed
body = CallBody(arguments=CallBodyArguments.from_dict({"count": 3}))
called = call_tool.sync("crm__count_orders", client=client, body=body)
assert called.result["content"][0]["text"] == "got {'count': 3}", called
missing = get_tool.sync("crm__nothing", client=client)
assert isinstance(missing, Problem) and missing.error.code == "tool_not_found", missing
slash = get_tool.sync("crm__report/yearly", client=client)
assert slash.tools[0].key == "crm__report/yearly", slash
"""


@pytest.mark.process
async def test_a_client_generated_from_the_description_works(open_rest, tmp_path):
    async with open_rest() as served:
        ann, origin = await served.key("acme", "ann"), served.url.removesuffix("/mcp")
        (tmp_path / "api.json").write_text((await served.rest(ann, "GET", "/openapi.json")).text)
        config = '{"package_name_override": "toolscout_client", "project_name_override": "made", "post_hooks": []}'
        (tmp_path / "config.json").write_text(config)
        made = ("generate", "--path", "api.json", "--config", "config.json", "--fail-on-warning")
        await run(BIN / "openapi-python-client", *made, cwd=tmp_path)
        await run(sys.executable, "-c", USE_CLIENT, origin, ann, cwd=tmp_path / "made")
