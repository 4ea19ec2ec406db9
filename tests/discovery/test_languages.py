"""Other languages: requests are read by a glossary, descriptions by their own words, and nobody is told nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolscout import Scout
from toolscout.discovery.foreign import to_english
from toolscout.discovery.understand import understand
from toolscout.models import Query

ROWS = [json.loads(line) for line in (Path(__file__).parent / "languages.jsonl").read_text("utf-8").splitlines()]
KNOWN = [row for row in ROWS if "unseen" not in row]
UNSEEN = [row for row in ROWS if "unseen" in row]
LANGUAGES = ("zh", "es", "de", "ja")


async def recall(scout: Scout, rows: Sequence[dict[str, Any]], language: str) -> float:
    right = 0
    for row in rows:
        answer = await scout.search_tools(row["query"][language], top_k=5)
        right += row["tool"] in [match.tool.key for match in answer]
    return right / len(rows)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_requests_in_another_language_find_tools_described_in_english(sample_scout: Scout, language: str) -> None:
    assert await recall(sample_scout, KNOWN, language) >= 0.85


@pytest.mark.parametrize("language", LANGUAGES)
async def test_requests_that_the_glossary_was_not_made_with_find_half_of_theirs(
    sample_scout: Scout, language: str
) -> None:
    assert await recall(sample_scout, UNSEEN, language) >= 0.4


@pytest.mark.parametrize("language", LANGUAGES)
async def test_descriptions_in_another_language_are_found_in_it_and_in_english(
    open_scout: Callable[..., Scout], sample_rows: list[dict[str, Any]], language: str
) -> None:
    translated = {row["tool"]: row["description"][language] for row in KNOWN}
    rows = [
        {**row, "description": translated.get(f"{row['server']}__{row['name']}", row["description"])}
        for row in sample_rows
    ]
    async with open_scout(rows) as scout:
        assert await recall(scout, KNOWN, language) >= 0.85
        assert await recall(scout, KNOWN, "en") >= 0.75


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("发送电子邮件", "send email"),
        ("用 SQL 查询数据库", "SQL query database"),
        ("カレンダーに予定を追加", "calendar add"),
        ("Wettervorhersage für Berlin", "weather forecast berlin"),
        ("eine Rechnung erstellen", "invoice create"),
        ("descargar el archivo adjunto", "download file attachment"),
        ("¿Cuál es el pronóstico del tiempo para mañana?", "forecast time tomorrow"),
    ],
)
def test_a_request_is_read_word_by_word(text: str, english: str) -> None:
    assert to_english(text) == english


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "send an email",
        "find hotels in Los Angeles",
        "test report",
        "discord",
        "postgres",
        "todoist webhook",
        "machine status",
        "linkedin repost",
        "list the pods in a cluster and restart die hard",
        "Show me the de facto standard for La Paz",
        "отправить письмо",
        "메모 저장",
        "鬱鬱勃勃乾坤大",
        "der die das",
    ],
)
def test_english_and_what_cannot_be_read_stay_as_they_are(text: str) -> None:
    assert to_english(text) is None


def test_what_was_written_stays_an_intent_beside_its_translation() -> None:
    intents = understand(Query(text="发送邮件"))
    assert [intent.text for intent in intents] == ["send email", "send email", "发送邮件"]
    assert [intent.text for intent in understand(Query(text="发送邮件", ranker="keyword"))] == ["发送邮件"]


@pytest.mark.parametrize(
    "query",
    [
        "烤一个酸面包",
        "サワードウのパンを焼く",
        "hornear un pan de masa madre",
        "ein Sauerteigbrot backen",
        "鬱鬱勃勃乾坤大",
        "печь хлеб",
    ],
)
async def test_a_request_that_nothing_fits_is_declined_in_every_language(sample_scout: Scout, query: str) -> None:
    answer = await sample_scout.search_tools(query)
    assert len(answer) == 0
    assert answer.suggestions


@pytest.mark.parametrize("text", ["发\ud83d送邮件", "送\x00信", "メ" * 3_000, "für " * 900, "ñ", "邮"])
async def test_strange_text_in_another_script_breaks_nothing(sample_scout: Scout, text: str) -> None:
    assert (await sample_scout.search_tools(text)).metadata.degraded is None


async def test_an_explained_hit_shows_the_english_that_was_searched_for(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("给客户退款", explain=True)
    assert answer[0].tool.key == "stripe__create_refund"
    assert (answer[0].explain or {})["intent"] == "customer refund"
