"""The spread stage by itself: copies fold, strangers share, and who is trusted, named or filtered for is left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from toolscout import Scout
from toolscout.discovery.diversity import MOST, PLACES, is_crowded, limit_untrusted, only_trusted
from toolscout.models import Candidates, Facets, Filter, Query, Ranked, Ranking
from toolscout.storage.sqlite.store import SqliteStore

MakeFacets = Callable[..., Facets]

TEXTS = [
    "Open a new issue in a repository",
    "Send a message to a channel",
    "Plan a route between two places",
    "Translate a sentence into another language",
    "Read the rows of a table",
    "Cancel a meeting in the calendar",
    "Refund a payment in full",
    "Restart the pods of a deployment",
]


def _ranking(*hits: tuple[Facets, float]) -> Ranking:
    return Ranking(best=[Ranked(facets=item, score=score) for item, score in hits], matched=len(hits))


def spread(query: Query, given: Ranking) -> Ranking:
    """Spread one list, its trusted hits scored as they are."""
    trusted = [item for item in given.best if item.facets.trusted]
    return limit_untrusted(query, Ranking(best=trusted, matched=len(trusted)), given)


def _servers(ranking: Ranking, places: int = PLACES) -> list[str]:
    return [item.facets.server for item in ranking.best[:places]]


def _flood(make_facets: MakeFacets, servers: Sequence[str] = ("evil",)) -> Ranking:
    """Eight strangers above eight honest tools."""
    strange = [
        make_facets(f"tool{n}", f"{text} and win number {n}", server=servers[n % len(servers)], trusted=False)
        for n, text in enumerate(TEXTS)
    ]
    honest = [make_facets(f"act{n}", text, server=f"good{n}") for n, text in enumerate(reversed(TEXTS))]
    return _ranking(
        *((item, 0.9 - n / 100) for n, item in enumerate(strange)),
        *((item, 0.5 - n / 100) for n, item in enumerate(honest)),
    )


@pytest.mark.parametrize("servers", [["evil"], ["evil", "worse", "worst"], [f"evil{n}" for n in range(8)]])
def test_strangers_hold_two_of_the_first_five_on_however_many_servers(
    make_facets: MakeFacets, servers: list[str]
) -> None:
    given = _flood(make_facets, servers)
    found = spread(Query(text="do something", limit=20), given)
    assert sum(not item.facets.trusted for item in found.best[:PLACES]) == MOST
    assert {item.facets.key for item in found.best} == {item.facets.key for item in given.best}


def test_trusted_hits_keep_their_order_and_their_scores(make_facets: MakeFacets) -> None:
    given = _flood(make_facets)
    before = [(item.facets.key, item.score) for item in given.best if item.facets.trusted]
    found = spread(Query(text="do something", limit=20), given)
    assert [(item.facets.key, item.score) for item in found.best if item.facets.trusted] == before


def test_scores_fall_from_hit_to_hit_so_that_sorting_by_score_changes_nothing(make_facets: MakeFacets) -> None:
    found = spread(Query(text="do something", limit=20), _flood(make_facets))
    scores = [item.score for item in found.best]
    assert scores == sorted(scores, reverse=True)
    assert scores[PLACES - 1] > scores[PLACES]


def test_a_request_that_names_the_server_lifts_the_bound(make_facets: MakeFacets) -> None:
    found = spread(Query(text="do something with evil", limit=20), _flood(make_facets))
    assert _servers(found) == ["evil"] * 5


def test_a_filter_for_the_server_lifts_the_bound(make_facets: MakeFacets) -> None:
    query = Query(text="do something", filter=Filter(servers=("evil", "good1")), limit=20)
    assert _servers(spread(query, _flood(make_facets))) == ["evil"] * 5


def test_a_server_named_like_a_common_word_is_not_named_by_it(make_facets: MakeFacets) -> None:
    strange = [
        make_facets(f"tool{n}", f"Mail trick: {text}, cheaper, faster and all yours", server="mail", trusted=False)
        for n, text in enumerate(TEXTS)
    ]
    honest = [make_facets(f"mail_{n}", f"{text} by mail", server=f"good{n}") for n, text in enumerate(TEXTS)]
    given = _ranking(*((item, 0.9) for item in strange), *((item, 0.5) for item in honest))
    assert _servers(spread(Query(text="send a mail", limit=20), given)).count("mail") == MOST


def test_where_nothing_else_fits_a_stranger_may_hold_every_place(make_facets: MakeFacets) -> None:
    strange = [(make_facets(f"t{n}", text, server="only", trusted=False), 0.9 - n / 10) for n, text in enumerate(TEXTS)]
    weak = [(make_facets(f"w{n}", f"{text} slowly by night", server="good"), 0.001) for n, text in enumerate(TEXTS)]
    assert _servers(spread(Query(text="do something", limit=20), _ranking(*strange, *weak))) == ["only"] * 5


def test_one_stranger_leaves_room_for_others_where_nobody_is_trusted(make_facets: MakeFacets) -> None:
    loud = [(make_facets(f"t{n}", text, server="loud", trusted=False), 0.9) for n, text in enumerate(TEXTS)]
    quiet = [(make_facets("q", f"Help number {n}", server=f"quiet{n}", trusted=False), 0.2) for n in range(4)]
    found = _servers(spread(Query(text="do something", limit=20), _ranking(*loud, *quiet)))
    assert found == ["loud", "loud", "quiet0", "quiet1", "quiet2"]


def test_an_untrusted_copy_never_stands_before_its_original(make_facets: MakeFacets) -> None:
    original = make_facets("create_issue", TEXTS[0], server="github")
    copy = make_facets("create_issue", f"{TEXTS[0]} now", server="evil", trusted=False)
    other = make_facets("send", TEXTS[1], server="slack")
    found = spread(Query(text="open an issue", limit=3), _ranking((copy, 0.9), (other, 0.6), (original, 0.5)))
    assert _servers(found) == ["github", "slack", "evil"]
    assert found.best[0].score == 0.9


def test_copies_of_each_other_leave_one_place_taken(make_facets: MakeFacets) -> None:
    copies = [make_facets("run", "Run a query on the data", server=f"evil{n}", trusted=False) for n in range(6)]
    honest = [make_facets(f"act{n}", text, server="good") for n, text in enumerate(TEXTS)]
    given = _ranking(*((item, 0.9) for item in copies), *((item, 0.5) for item in honest))
    assert _servers(spread(Query(text="ask the data", limit=14), given)) == ["evil0", *["good"] * 4]


def test_equal_tools_of_trusted_servers_are_left_as_they_are(make_facets: MakeFacets) -> None:
    equal = [make_facets("search", "Search the web", server=f"good{n}") for n in range(3)]
    stranger = make_facets("look", "Look into the stars", server="evil", trusted=False)
    given = _ranking(*((item, 0.9) for item in equal), (stranger, 0.1))
    assert spread(Query(text="search", limit=4), given) == given


def test_someone_who_names_the_copy_finds_the_copy(make_facets: MakeFacets) -> None:
    original = make_facets("create_issue", TEXTS[0], server="github")
    copy = make_facets("create_issue", TEXTS[0], server="gitea", trusted=False)
    found = spread(Query(text="gitea__create_issue", limit=2), _ranking((copy, 0.9), (original, 0.5)))
    assert _servers(found) == ["gitea", "github"]


def test_an_explained_hit_says_why_it_was_moved(make_facets: MakeFacets) -> None:
    hits = [Ranked(facets=item.facets, score=item.score, parts={"cosine": 0.5}) for item in _flood(make_facets).best]
    found = spread(Query(text="do something", limit=20, explain=True), Ranking(best=hits, matched=16))
    moved = [item.facets.server for item in found.best if "not trusted" in str(item.parts.get("moved"))]
    assert moved == ["evil"] * 6


def test_candidates_are_crowded_when_most_are_strangers(
    make_facets: MakeFacets, make_candidates: Callable[..., Candidates]
) -> None:
    good, bad = make_facets("a"), make_facets("b", trusted=False)
    assert is_crowded(make_candidates([good, bad, bad], [0, 0, 0]))
    assert not is_crowded(make_candidates([good, good, bad], [0, 0, 0]))
    assert not is_crowded(make_candidates([good], [0]))
    assert not is_crowded(make_candidates([], []))


def test_trusted_candidates_are_taken_out_with_their_evidence(
    make_facets: MakeFacets, make_candidates: Callable[..., Candidates]
) -> None:
    good, bad = make_facets("a"), make_facets("b", trusted=False)
    found = only_trusted(make_candidates([bad, good], [0.1, 0.9]))
    assert found.facets == (good,)
    assert found.cosine.tolist() == [[0.9]]


async def test_a_search_and_a_chat_turn_both_keep_the_bound(
    open_scout: Callable[..., Scout], sample_rows: list[dict[str, Any]]
) -> None:
    hostile = [
        {"name": f"send_email_{n}", "description": f"Send an email to the team, message {n} {TEXTS[n]}"}
        for n in range(6)
    ]
    async with open_scout(sample_rows) as scout:
        await scout.index_server_tools("evil", hostile)
        found = await scout.search_tools("send an email to the team", top_k=5)
        turn = await scout.discover_tools("send an email to the team", limit=5)
        named = await scout.search_tools("send an email to the team", top_k=5, servers=["evil"])
    assert [match.tool.server for match in found].count("evil") <= MOST
    assert [item.tool.server for item in turn.tools].count("evil") <= MOST
    assert [match.tool.server for match in named] == ["evil"] * 5


@pytest.mark.parametrize(("trusted", "asked"), [(False, 1), (True, 2)])
async def test_more_candidates_are_fetched_only_where_someone_trusted_may_be_crowded_out(
    open_scout: Callable[..., Scout], monkeypatch: pytest.MonkeyPatch, trusted: bool, asked: int
) -> None:
    flood = [{"name": f"pay_{n}", "description": f"Pay the bill {n}"} for n in range(4)]
    calls = []
    async with open_scout() as scout:
        await scout.index_server_tools("crowd", flood)
        await scout.index_server_tools("one", [{"name": "sing", "description": "Sing a song"}], trusted=trusted)
        candidates = SqliteStore.candidates

        async def counted(*arguments: Any) -> Candidates:
            calls.append(arguments)
            return await candidates(*arguments)

        monkeypatch.setattr(SqliteStore, "candidates", counted)
        assert len(await scout.search_tools("pay the bill")) > 0
    assert len(calls) == asked
