"""Resources and prompts of servers have names that contain the server. Servers that are down cause no wait."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference, ResourceLink, TextResourceContents

from guarantees import guarantee
from guarded import guarded
from scripted import Scripted
from toolscout.gateway import resources
from toolscout.gateway.resources import ServerResources
from toolscout.policy.policy_file import parse_policy
from toolscout.settings import Settings

pytestmark = guarantee("proto:passthrough")


def said(text):
    return {"type": "text", "text": text}


PREFIX = "toolscout://servers/files/"


@pytest.fixture
def files():
    server = Scripted("files")
    listed = [{"uri": "file:///a b%20c.txt?x=1#y", "name": "a", "mimeType": "text/plain"}]
    server.requests = {
        "resources/list": lambda params: (
            {"resources": listed[:1], "nextCursor": "2"}
            if "cursor" not in params
            else {"resources": [{"uri": "file:///b", "name": "b"}]}
        ),
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "file:///{path}", "name": "any"}]},
        "resources/read": lambda params: {"contents": [{"uri": params["uri"], "text": f"at {params['uri']}"}]},
        "prompts/list": {"prompts": [{"name": "review", "arguments": [{"name": "path"}]}]},
        "prompts/get": lambda params: {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": f"{params['name']} {params['arguments']}"}}
            ]
        },
        "completion/complete": lambda params: {"completion": {"values": [str(params["ref"])]}},
    }
    return server


@pytest.fixture
def dead():
    return Scripted("dead", state="failed")


@pytest.fixture(params=["legacy", "2026-07-28"])
def connect(request, open_gateway, files, dead, demo):
    @asynccontextmanager
    async def connected():
        async with open_gateway(files, dead, demo) as opened, Client(opened.server, mode=request.param) as client:
            yield client

    return connected


async def test_every_resource_is_listed_and_read_under_its_server(connect):
    async with connect() as client:
        listed = (await client.list_resources()).resources
        assert [item.uri for item in listed] == [PREFIX + "file:///a b%20c.txt?x=1#y", PREFIX + "file:///b"]
        read = (await client.read_resource(listed[0].uri)).contents[0]
        assert read.text == "at file:///a b%20c.txt?x=1#y"
        assert read.uri == listed[0].uri


async def test_a_template_stays_a_template(connect):
    async with connect() as client:
        template = (await client.list_resource_templates()).resource_templates[0].uri_template
        assert template == PREFIX + "file:///{path}"
        read = (await client.read_resource(template.replace("{path}", "x%20y"))).contents[0]
        assert read.text == "at file:///x%20y"


async def test_prompts_are_named_by_their_server(connect):
    async with connect() as client:
        assert [item.name for item in (await client.list_prompts()).prompts] == ["files__review"]
        got = await client.get_prompt("files__review", {"path": "a"})
        assert got.messages[0].content.text == "review {'path': 'a'}"


@pytest.mark.parametrize("uri", ["file:///b", "toolscout://servers/absent/x", "toolscout://servers/", "toolscout://x"])
async def test_an_address_that_names_nothing_is_an_error(connect, uri):
    async with connect() as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
        assert raised.value.code == (-32602 if client.protocol_version == "2026-07-28" else -32002)


async def test_a_link_in_a_result_can_be_read_as_it_is(open_gateway, files):
    link = {"type": "resource_link", "uri": "file:///linked", "name": "linked"}
    files.tool("find", {"content": [link]}, description="Find a file")
    async with open_gateway(files) as opened, Client(opened.server) as client:
        got = await client.call_tool("call_tool", {"name": "files__find"})
        [found] = got.content
        assert isinstance(found, ResourceLink)
        assert found.uri == "file:///linked"
        [contents] = (await client.read_resource("file:///linked")).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.text == "at file:///linked"


async def test_a_link_that_two_servers_name_is_read_at_neither(open_gateway, files, demo):
    link = {"content": [{"type": "resource_link", "uri": "file:///linked", "name": "linked"}]}
    files.tool("find", link)
    demo.tool("find", link)
    async with open_gateway(files, demo) as opened, Client(opened.server) as client:
        for key in ("files__find", "demo__find", "files__find"):
            await client.call_tool("call_tool", {"name": key})
        with pytest.raises(MCPError):
            await client.read_resource("file:///linked")
        assert (await client.read_resource(PREFIX + "file:///linked")).contents


async def test_a_prompt_that_needs_input_is_a_clear_error_in_older_versions(open_gateway, files):
    files.requests["prompts/get"] = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}
    async with open_gateway(files) as opened, Client(opened.server, mode="legacy") as client:
        with pytest.raises(MCPError, match="needs input"):
            await client.get_prompt("files__review", {})


async def test_completions_go_to_the_server_of_the_prompt(connect):
    async with connect() as client:
        from mcp_types import PromptReference, ResourceTemplateReference

        got = await client.complete(PromptReference(name="files__review"), {"name": "path", "value": "a"})
        assert "'name': 'review'" in got.completion.values[0]
        got = await client.complete(
            ResourceTemplateReference(uri=PREFIX + "file:///{path}"), {"name": "path", "value": "a"}
        )
        assert "'uri': 'file:///{path}'" in got.completion.values[0]


@guarantee("fault:huge")
@pytest.mark.parametrize(
    ("method", "field", "name"), [("resources/list", "resources", "uri"), ("prompts/list", "prompts", "name")]
)
async def test_a_list_without_end_is_cut_and_not_kept_for_every_caller(open_gateway, monkeypatch, method, field, name):
    monkeypatch.setattr(resources, "_MAX_CACHED_BYTES", 4_500_000)
    flood = Scripted("flood")
    item = {"name": "n", name: "x" * 1_000}
    pages = []

    def page(_params):
        pages.append(1)
        return {field: [item] * 400, "nextCursor": str(len(pages))}

    flood.requests = {method: page}
    async with open_gateway(flood) as opened:
        kept = ServerResources(opened.scout)

        async def requested(user):
            """List as one of many callers, and return how many pages the server was asked for."""
            before = len(pages)
            assert 900 < len(await kept.list_all(method, replace(opened.scout.caller, user=user))) < 1_100
            return len(pages) - before

        assert [await requested(str(number)) for number in range(6)] == [3] * 6
        assert [await requested(str(number)) for number in (5, 4)] == [0, 0], "those of the last callers are kept"
        assert await requested("0") == 3, "that of the first made room"


USES = [
    ("files__resources/read", lambda client: client.read_resource(PREFIX + "file:///b")),
    ("files__prompts/get", lambda client: client.get_prompt("files__review", {"path": "x"})),
    (
        "files__completion/complete",
        lambda client: client.complete(PromptReference(name="files__review"), {"name": "path", "value": "a"}),
    ),
]


@guarantee("access:resources")
@pytest.mark.parametrize(("key", "use"), USES, ids=[key for key, _ in USES])
async def test_resources_prompts_and_completions_obey_rules_and_limits_and_are_audited(
    open_gateway, files, tmp_path, key, use
):
    log = tmp_path / "audit.jsonl"
    settings = Settings(reindex_interval_s=0.05, audit=str(log))
    files.tool("list")
    async with open_gateway(files, settings=settings) as opened, Client(opened.server) as client:
        await use(client)
        allow = '[[allow]]\nwho = ["anyone"]\n'
        opened.scout.access.apply_policy(parse_policy(f'{allow}[[deny]]\nwho = ["anyone"]\ntools = ["{key.upper()}"]'))
        with pytest.raises(MCPError, match="may not use"):
            await use(client)
        opened.scout.access.apply_policy(parse_policy(f"{allow}[limits]\ncalls_per_minute = 1"))
        await use(client)
        with pytest.raises(MCPError, match="limit"):
            await use(client)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["tool"], line["outcome"]) for line in lines if line["act"] == "call"] == [
        (key, outcome) for outcome in ("ok", "not_allowed", "ok", "limit_reached")
    ]


@guarantee("access:resources", "access:absent-equals-forbidden")
async def test_rules_that_name_resources_and_prompts_decide_what_is_listed_and_used(open_gateway, files, tmp_path):
    log = tmp_path / "audit.jsonl"
    settings = Settings(reindex_interval_s=0.05, audit=str(log))
    files.tool("list")
    allow = '[[allow]]\nwho = ["anyone"]\nservers = ["files"]\nresources = ["file:///b"]\nprompts = ["none"]\n'
    async with open_gateway(files, settings=settings) as opened, Client(opened.server) as client:
        for tools in ("", '[[allow]]\nwho = ["anyone"]\ntools = ["*"]\n'):
            opened.scout.access.apply_policy(parse_policy(allow + tools))
            assert [item.name for item in (await client.list_resources()).resources] == ["b"]
            assert (await client.list_resource_templates()).resource_templates == []
            assert (await client.list_prompts()).prompts == []
            assert (await client.read_resource(PREFIX + "file:///b")).contents
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(PREFIX + "file:///a b%20c.txt?x=1#y")
            with pytest.raises(MCPError, match="no such prompt"):
                await client.get_prompt("files__review", {"path": "x"})
            with pytest.raises(MCPError, match="no such prompt"):
                await client.complete(PromptReference(name="files__review"), {"name": "path", "value": "a"})
        opened.scout.access.apply_policy(parse_policy(tools + '[[deny]]\nwho = ["anyone"]\nresources = ["file:///b"]'))
        assert [item.name for item in (await client.list_resources()).resources] == ["a"]
        assert [item.name for item in (await client.list_prompts()).prompts] == ["files__review"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    refused = [line["tool"] for line in lines if line["act"] == "call" and line["outcome"] == "tool_not_found"]
    assert refused == ["files__resources/read", "files__prompts/get", "files__completion/complete"] * 2


@guarantee("access:resources", "tenant:isolation")
async def test_a_rule_that_allows_resources_opens_no_server_of_another_tenant(files):
    policy = parse_policy('[[allow]]\nwho = ["anyone"]\nresources = ["*"]')
    async with guarded({"acme": [files], "zeta": [Scripted("hr")]}, policy=policy) as served:
        acme, zeta = await served.key("acme", "ann"), await served.key("zeta", "zoe")
        assert len((await served.told(acme, "resources/list"))["result"]["resources"]) == 2
        assert (await served.told(zeta, "resources/list"))["result"]["resources"] == []
        assert "error" in await served.told(zeta, "resources/read", {"uri": PREFIX + "file:///b"})
        files.tenants = None  # as in a config that says nothing: indexed for the local tenant
        assert (await served.told(zeta, "resources/list"))["result"]["resources"] == []
        assert "error" in await served.told(zeta, "resources/read", {"uri": PREFIX + "file:///b"})
