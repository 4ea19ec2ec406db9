"""`hybrid`, by its behaviour: names first, typos, meaning, other scripts, several needs, and an honest nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolscout import Answer, Scout, Settings
from toolscout.discovery.clauses import split_clauses
from toolscout.discovery.request import correct_typos, possible_typos, understand
from toolscout.models import Candidates, Query


def _keys(answer: Answer) -> list[str]:
    return [match.tool.key for match in answer]


async def test_a_key_as_the_query_finds_that_tool_first(sample_scout: Scout, sample_rows: list[dict[str, Any]]) -> None:
    keys = [f"{row['server']}__{row['name']}" for row in sample_rows]
    answers = [await sample_scout.search_tools(key, top_k=1) for key in keys]
    assert [_keys(answer)[:1] for answer in answers] == [[key] for key in keys]


async def test_a_name_as_the_query_finds_that_tool_first(
    sample_scout: Scout, sample_rows: list[dict[str, Any]]
) -> None:
    missed = []
    for row in sample_rows:
        answer = await sample_scout.search_tools(row["name"], top_k=1)
        if not answer or answer[0].tool.name.casefold() != row["name"].casefold():
            missed.append((row["name"], _keys(answer)))
    assert missed == []


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("email the team", "gmail__send_email"),
        ("refund a customer", "stripe__create_refund"),
        ("will it rain tomorrow", "weather__get-forecast"),
        ("what is in my inbox", "gmail__search_emails"),
        ("check my inbox", "gmail__search_emails"),
        ("cancel a meeting", "google-calendar__delete-event"),
        ("translate a sentence into French", "translate__translateText"),
        ("restart the pods", "kubernetes__rollout_restart"),
        ("upload a file to a bucket", "aws-s3__PutObject"),
        ("plan a route from Berlin to Munich by car", "maps__maps_directions"),
        ("take a screenshot", "browser__browser_take_screenshot"),
        ("which tables are in the database", "postgres__list_tables"),
    ],
)
async def test_a_need_in_plain_words_finds_its_tool_among_the_best(sample_scout: Scout, query: str, key: str) -> None:
    assert key in _keys(await sample_scout.search_tools(query, top_k=3))


@pytest.mark.parametrize("title", ["Gitea", "GitLab", "bit-bucket-mcp-server", "The Forge API"])
@pytest.mark.parametrize("order", [1, -1])
async def test_a_request_that_names_a_server_means_that_server(
    open_scout: Callable[..., Scout], title: str, order: int
) -> None:
    others = ["Gitea", "GitLab", "bit-bucket-mcp-server", "The Forge API"][::order]
    said = "Open a new issue in a repository, with a title, a body and labels."
    async with open_scout() as scout:
        await scout.index_tools([{"name": "create_issue", "server": one, "description": said} for one in others])
        name = title.removesuffix("-mcp-server").removesuffix(" API").replace("-", "").lower()
        best = (await scout.search_tools(f"open an issue about the login page on {name}", explain=True))[0]
    assert best.tool.server_title == title
    assert (best.explain or {})["server_named"]


async def test_one_word_that_tells_a_trusted_server_from_the_others_names_it(open_scout: Callable[..., Scout]) -> None:
    said = "Delete a project with all that is in it."
    rows = [
        {"name": "delete_project", "server": "linear-tools", "description": said},
        {"name": "delete_project", "server": "neon-tools", "description": said},
        {"name": "list_tools_of_a_project", "server": "tools", "description": "List the tools of a project."},
    ]
    async with open_scout(rows) as scout:
        for name in ("linear", "neon"):
            best = (await scout.search_tools(f"delete my {name} project Apollo", explain=True))[0]
            assert best.tool.server == f"{name}-tools"
            assert (best.explain or {})["server_named"]
        await scout.index_server_tools("linear-notion-slack", rows[:1])  # not trusted, so it must be named whole
        answer = await scout.search_tools("delete my slack project Apollo", explain=True)
        assert not any((match.explain or {})["server_named"] for match in answer)


async def test_a_hit_of_another_server_than_the_one_that_is_named_is_less_sure(
    open_scout: Callable[..., Scout],
) -> None:
    rows = [
        {"name": "delete_branch", "server": "gitlab", "description": "Delete a branch of a repository."},
        {"name": "list_branches", "server": "github", "description": "List the branches of a repository."},
    ]
    async with open_scout(rows) as scout:
        scores = [
            (await scout.search_tools(f"delete the stale branch of my {name} repository"))[0].score
            for name in ("gitlab", "github")
        ]
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[1] < scores[0]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("brwoser_take_screenshot", "browser__browser_take_screenshot"),
        ("trasnlate text", "translate__translateText"),
        ("creat_refund", "stripe__create_refund"),
        ("list_pul_requests", "github__list_pull_requests"),
        ("geocde", "maps__maps_geocode"),
        ("craete isue", "github__create_issue"),
    ],
)
async def test_a_typo_in_a_name_is_forgiven(sample_scout: Scout, query: str, key: str) -> None:
    assert key in _keys(await sample_scout.search_tools(query, top_k=5))


async def test_a_corrected_request_has_the_meaning_of_the_right_one(sample_scout: Scout) -> None:
    right = await sample_scout.search_tools("create issue", explain=True)
    typed = await sample_scout.search_tools("craete isue", explain=True)
    assert [(match.explain or {})["cosine"] for match in typed[:2]] == [
        (match.explain or {})["cosine"] for match in right[:2]
    ]


@pytest.mark.parametrize("query", ["weather in Paris", "flights from Rome", "buy a shoe"])
def test_a_name_and_another_word_of_few_letters_are_no_typos(query: str) -> None:
    request = understand(Query(text=query))
    terms = request.whole.terms
    unknown = Candidates(
        facets=(),
        cosine=np.zeros((1, 0), np.float32),
        terms=terms,
        impact=np.zeros((len(terms), 0), np.float32),
        fields=np.zeros((len(terms), 0), np.uint8),
        frequency=np.zeros(len(terms), np.int64),
        visible=10,
        with_vectors=True,
    )
    typos = possible_typos(request, unknown)
    assert correct_typos(request, typos, ["pair", "role", "show", "shop"]) == request


@pytest.mark.parametrize(
    "query",
    [
        "server: github tool: create_issue",
        "github:create_issue",
        "create_issue in github",
        "create_issue of github MCP server",
        "GitHub create issue",
    ],
)
async def test_a_name_with_its_server_is_as_good_as_a_key(sample_scout: Scout, query: str) -> None:
    best, *others = await sample_scout.search_tools(query)
    assert (best.tool.key, (best.score or 0) > 0.99) == ("github__create_issue", True)
    assert all((match.score or 0) < 0.5 for match in others)


CHINESE = [
    {"server": "amap", "name": "maps_weather", "description": "根据城市名称查询指定城市的天气预报"},
    {"server": "amap", "name": "maps_bicycling", "description": "骑行路径规划，用于规划骑行通勤方案"},
    {"server": "mail", "name": "send", "description": "发送电子邮件给收件人"},
    {"server": "jp", "name": "calendar", "description": "カレンダーに予定を追加する"},
    {"server": "ko", "name": "memo", "description": "메모를 작성하고 저장합니다"},
    {"server": "ru", "name": "perevod", "description": "Перевести деньги на другой счёт"},
    {"server": "en", "name": "stock_quote", "description": "Get the price of a share"},
]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("查询天气", "amap__maps_weather"),
        ("骑行路线规划", "amap__maps_bicycling"),
        ("发送邮件", "mail__send"),
        ("予定を追加", "jp__calendar"),
        ("메모 저장", "ko__memo"),
        ("перевести деньги", "ru__perevod"),
    ],
)
async def test_queries_in_other_scripts_find_descriptions_in_them(
    open_scout: Callable[..., Scout], query: str, key: str
) -> None:
    async with open_scout(CHINESE) as scout:
        assert _keys(await scout.search_tools(query))[0] == key


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        (
            "Find the cheapest restaurant near the office, then put a lunch meeting in the calendar "
            "and post a message about it in the slack channel.",
            {"maps", "google-calendar", "slack"},
        ),
        (
            "Give the customer her money back for the last payment. After that, create a ticket in jira "
            "and send her an email that says so.",
            {"stripe", "jira", "gmail"},
        ),
    ],
)
async def test_a_request_with_several_needs_covers_them(sample_scout: Scout, query: str, needs: set[str]) -> None:
    answer = await sample_scout.search_tools(query)
    assert needs <= {match.tool.server for match in answer}


def test_a_greeting_and_a_number_are_no_needs() -> None:
    said = "Hello there. 1. Send an email to Bob about the meeting. Thank you very much."
    assert split_clauses(said) == ()
    assert split_clauses(f"{said} 2. Then create a calendar event for Monday.") == (
        "Send an email to Bob about the meeting.",
        "Then create a calendar event for Monday.",
    )


OFF_TOPIC = [
    "zqxj vvkk wlrm",
    "qwertzuiop asdfghjkl",
    "bake a sourdough loaf",
    "who won the cup in 1974",
    "💥💥",
    "...",
]


@pytest.mark.parametrize("query", OFF_TOPIC)
async def test_a_request_that_nothing_fits_gets_no_hit_that_claims_to_fit(sample_scout: Scout, query: str) -> None:
    answer = await sample_scout.search_tools(query)
    assert {match.fit for match in answer} <= {"weak"}
    assert answer.suggestions


async def test_few_tools_are_shown_however_far_they_are_from_the_request(open_scout: Callable[..., Scout]) -> None:
    rows = [
        {"server": "memory", "name": "create_entities", "description": "Create entities in the knowledge graph"},
        {"server": "memory", "name": "add_observations", "description": "Add observations to existing entities"},
    ]
    async with open_scout(rows) as scout:
        answer = await scout.search_tools("remember that I prefer tea")
        assert [match.fit for match in answer] == ["weak", "weak"]
        picked = await scout.discover_tools("remember that I prefer tea")
        assert len(picked.openai_tools()) == 2


async def test_an_answer_without_a_hit_says_what_there_is(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("zqxj vvkk wlrm", ranker="keyword")
    assert _keys(answer) == []
    assert any("communication" in line for line in answer.suggestions)
    assert answer.metadata.matched == 0


@pytest.mark.parametrize(
    "narrow", [{"servers": ["weather"]}, {"category": "communication"}, {"tags": ["email"]}], ids=str
)
async def test_a_filter_is_never_followed_by_nothing(sample_scout: Scout, narrow: Any) -> None:
    answer = await sample_scout.search_tools("zqxj vvkk wlrm", **narrow)
    assert len(answer) > 0
    assert {match.fit for match in answer} == {"weak"}
    assert "None of these clearly fits" in answer.suggestions[0]


@pytest.mark.parametrize("ranker", ["hybrid", "keyword", "fuzzy", "semantic", "boosted"])
async def test_without_vectors_too_a_filter_is_never_followed_by_nothing(
    open_scout: Callable[..., Scout], ranker: str
) -> None:
    rows = [{"server": "weather", "name": "forecast"}, {"server": "mail", "name": "send"}]
    async with open_scout(rows, embedder=None, settings=Settings(embedder="none")) as scout:
        answer = await scout.search_tools("zqxj vvkk wlrm", servers=["weather"], ranker=ranker)
        assert _keys(answer) == ["weather__forecast"]
        assert answer[0].fit in ("weak", None)
        if ranker not in ("semantic", "boosted"):  # their thresholds are cosines, and there are none
            assert not await scout.search_tools("zqxj vvkk", servers=["weather"], ranker=ranker, threshold=0.1)


async def test_a_sure_answer_gives_no_advice(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("create an issue in github")
    assert answer[0].tool.key == "github__create_issue"
    assert answer[0].fit == "strong"
    assert answer.suggestions == ()


async def test_a_keyword_of_the_author_finds_the_tool(open_scout: Callable[..., Scout]) -> None:
    rows = [
        {"name": "run_job", "description": "Start a job.", "keywords": ["zamboni"], "examples": ["smooth the ice"]},
        *({"name": f"job_{number}", "description": "Handle a job of the rink."} for number in range(20)),
    ]
    async with open_scout(rows) as scout:
        for query in ("zamboni", "please smooth the ice"):
            assert (await scout.search_tools(query))[0].tool.name == "run_job"


@pytest.mark.parametrize("field", ["tags", "keywords", "capabilities"])
async def test_each_kind_of_label_reaches_the_words_and_the_vectors(
    open_scout: Callable[..., Scout], field: str
) -> None:
    rows = [
        {"name": "run_job", "description": "Start a job.", field: ["weather"]},
        *({"name": f"job_{number}", "description": "Handle a job of the rink."} for number in range(20)),
    ]
    async with open_scout(rows) as scout:
        assert (await scout.search_tools("weather"))[0].tool.name == "run_job"
        assert (await scout.search_tools("will it rain tomorrow", ranker="semantic"))[0].tool.name == "run_job"


async def test_tags_of_the_filter_lift_the_tools_that_have_more_of_them(open_scout: Callable[..., Scout]) -> None:
    rows = [
        {"server": "one", "name": "send_note", "description": "Send a note.", "tags": ["mail"]},
        {"server": "two", "name": "send_note", "description": "Send a note.", "tags": ["mail", "team"]},
    ]
    async with open_scout(rows) as scout:
        answer = await scout.search_tools("send a note", tags=["mail", "team"])
        assert [match.tool.server for match in answer] == ["two", "one"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("merge MR 42", "merge merge request 42"),
        ("list my PRs", "list my pull requests"),
        ("What time is it in Tokyo?", "current time in Tokyo?"),
        ("describe the PRD and the mr_id", "describe the PRD and the mr_id"),
    ],
)
def test_short_forms_are_spelled_out(text: str, read: str) -> None:
    assert understand(Query(text=text)).whole.text == read


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("read notes.md, translate it to German, upload the result to Drive", 3),
        ("list open issues + summarize the comments + email the summary to Ann", 3),
        ("create a branch for the release, merge pull request 12 then open a new one", 3),
        ('in the "Q4 Budget" sheet, turn any cell in D2:D200 red once it is above 5000', 0),
        ("my nightly sync did not work, show me the latest runs of it", 0),
    ],
)
def test_orders_in_a_row_are_needs_and_what_stands_before_an_order_belongs_to_it(query: str, needs: int) -> None:
    assert len(split_clauses(query)) == needs


def test_two_needs_joined_by_and_are_two_clauses() -> None:
    parts = split_clauses("create a GitHub issue and email it to my boss")
    assert parts == ("create a GitHub issue", "email it to my boss")


async def test_a_threshold_of_nothing_shows_the_nearest_however_far(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("bake a sourdough loaf", threshold=0)
    assert len(answer) == 10


async def test_scores_lie_between_nothing_and_one_and_differ(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("list the open pull requests", threshold=0, top_k=50)
    scores = [match.score or 0.0 for match in answer]
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(scores)) > 40


@pytest.mark.parametrize("query", ["\ud800", "send \udfff mail", "\x00", "a\x00b", "‮mail", "mail " * 700])
async def test_a_strange_query_is_a_query(sample_scout: Scout, query: str) -> None:
    for ranker in ("hybrid", "semantic", "keyword", "fuzzy", "boosted"):
        answer = await sample_scout.search_tools(query, ranker=ranker)
        assert answer.metadata.ranker == ranker
        assert answer.metadata.degraded is None
