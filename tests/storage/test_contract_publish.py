"""Every store: what is published is there, whole, until it is replaced or removed."""

from __future__ import annotations

from catalogues import keys, many, publish
from guarantees import guarantee
from toolscout.models import Caller, Filter, Scope
from toolscout.ports import Store

pytestmark = guarantee("store:contract")

MAIL = {"name": "send_mail", "server": "post", "description": "Send a letter by mail"}
PARCEL = {"name": "send_parcel", "server": "post", "description": "Send a parcel"}
DRAW = {"name": "draw", "server": "studio", "description": "Draw a picture"}


async def test_an_empty_store_says_so(store: Store) -> None:
    overview = await store.overview(Caller())
    assert (overview.total, overview.tokens, overview.categories) == (0, 0, ())
    assert (overview.generation, overview.model_id, overview.stale) == (0, "", False)
    assert await store.facets(Caller(), Filter()) == []
    assert await store.servers(Scope()) == []
    assert await store.unembedded("any-model") == []


async def test_what_is_published_comes_back_as_it_was(store: Store) -> None:
    row = {
        "id": "doc-17",
        "name": "convert",
        "server": "Media Lab",
        "title": "Convert a file",
        "description": "Converts a file, even Größe and 日本語 — both.",
        "input_schema": {"type": "object", "properties": {"to": {"enum": ["pdf", "png"]}}},
        "output_schema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"vendor": {"x": 1}},
        "category": "documents",
        "tags": ["files", "media"],
        "keywords": ["transcode"],
        "examples": ["turn it into a PDF", {"to": "png"}],
        "related": ["inspect"],
    }
    await publish(store, [row])
    tool = (await store.tools(Caller(), ["Media-Lab__convert"]))["Media-Lab__convert"]
    assert (tool.id, tool.name, tool.title, tool.server, tool.server_title) == (
        "doc-17",
        "convert",
        "Convert a file",
        "Media-Lab",
        "Media Lab",
    )
    assert tool.description == row["description"]
    assert (tool.input_schema, tool.output_schema) == (row["input_schema"], row["output_schema"])
    assert (tool.annotations, tool.meta) == (row["annotations"], row["_meta"])
    assert (tool.category, tool.tags, tool.keywords) == ("documents", ("files", "media"), ("transcode",))
    assert (tool.examples, tool.related) == (("turn it into a PDF", {"to": "png"}), ("inspect",))
    assert len(tool.fingerprint) == 64
    assert tool.read_only


async def test_a_server_is_replaced_whole_and_the_others_stay(store: Store) -> None:
    await publish(store, [MAIL, PARCEL, DRAW])
    await publish(store, [PARCEL])
    assert await keys(store) == ["post__send_parcel", "studio__draw"]


async def test_unchanged_tools_need_not_be_sent_again(store: Store) -> None:
    await publish(store, [MAIL, PARCEL])
    before = await store.tools(Caller(), ["post__send_mail"])
    await publish(store, [MAIL, {**PARCEL, "description": "Send a parcel anywhere"}])
    after = await store.tools(Caller(), ["post__send_mail", "post__send_parcel"])
    assert after["post__send_mail"] == before["post__send_mail"]
    assert after["post__send_parcel"].description == "Send a parcel anywhere"


async def test_every_publication_is_one_generation(store: Store) -> None:
    first = await publish(store, [MAIL])
    second = await publish(store, [MAIL, DRAW])
    assert second == first + 1
    assert (await store.overview(Caller())).generation == second


async def test_stamps_change_only_with_their_tool(store: Store) -> None:
    await publish(store, [MAIL, PARCEL])
    before = await store.stamps(Scope(), "post")
    assert set(before) == {"post__send_mail", "post__send_parcel"}
    await publish(store, [MAIL, {**PARCEL, "tags": ["slow"]}])
    after = await store.stamps(Scope(), "post")
    assert after["post__send_mail"] == before["post__send_mail"]
    assert after["post__send_parcel"] != before["post__send_parcel"]
    assert await store.stamps(Scope(), "nowhere") == {}
    assert await store.stamps(Scope(tenant="someone-else"), "post") == {}


async def test_servers_are_listed_by_key_with_the_operators_spelling(store: Store) -> None:
    await publish(store, [DRAW, {**MAIL, "server": "Post Office"}])
    assert [(server.key, server.title) for server in await store.servers(Scope())] == [
        ("Post-Office", "Post Office"),
        ("studio", "studio"),
    ]


async def test_removing_a_server_removes_its_tools_and_no_others(store: Store) -> None:
    await publish(store, [MAIL, PARCEL, DRAW])
    before = (await store.overview(Caller())).generation
    assert await store.remove_server(Scope(), "post") == 2
    assert await keys(store) == ["studio__draw"]
    assert [server.key for server in await store.servers(Scope())] == ["studio"]
    assert (await store.overview(Caller())).generation == before + 1


async def test_removing_a_server_that_does_not_exist_removes_nothing(store: Store) -> None:
    await publish(store, [DRAW])
    assert await store.remove_server(Scope(), "post") == 0
    assert await store.remove_server(Scope(tenant="someone-else"), "studio") == 0
    assert await keys(store) == ["studio__draw"]


async def test_keys_come_in_order_whatever_order_they_were_published_in(store: Store) -> None:
    rows = many(50)
    await publish(store, rows[::-1])
    all_keys = await keys(store)
    assert all_keys == sorted(all_keys)
    assert len(all_keys) == 50


async def test_definitions_omit_keys_that_do_not_exist(store: Store) -> None:
    await publish(store, [MAIL])
    assert set(await store.tools(Caller(), ["post__send_mail", "post__nothing", ""])) == {"post__send_mail"}
