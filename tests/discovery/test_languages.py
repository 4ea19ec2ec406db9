"""Other languages: requests are read by a glossary, descriptions by their own words, and nobody is told nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolscout import Scout
from toolscout.discovery.request import understand
from toolscout.discovery.translation import LONGEST_WORD, glossary, to_english
from toolscout.models import Query
from toolscout.text import HAN_AND_KANA, split_words

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


def test_the_original_is_searched_for_beside_its_translation() -> None:
    request = understand(Query(text="发送邮件"))
    assert (request.text, request.whole.text) == ("发送邮件", "send email")
    assert [intent.text for intent in request.intents] == ["send email", "send email", "发送邮件"]
    assert request.clauses == ()
    unread = understand(Query(text="发送邮件", ranker="keyword"))
    assert (unread.whole.text, unread.original) == ("发送邮件", None)


def test_every_entry_of_the_glossary_can_be_used() -> None:
    entries = glossary()
    assert len(entries) >= 380
    assert len({entry.english for entry in entries}) == len(entries)
    for entry in entries:
        assert set(entry.forms) == {"chinese", "spanish", "german", "japanese"}
        assert entry.english == entry.english.strip().lower()
        assert any(entry.forms.values()), entry.english
        for language in ("spanish", "german"):
            for form in entry.forms[language]:
                stem = form.removesuffix("*")
                assert split_words(stem) == [stem], f"{form} is not written as requests are read"
                assert len(stem) >= 3 or not form.endswith("*"), f"{form} stands for too many words"
        for language in ("chinese", "japanese"):
            for form in entry.forms[language]:
                assert HAN_AND_KANA.fullmatch(form), form
                assert len(form) <= LONGEST_WORD, form


@pytest.mark.parametrize("languages", [("spanish",), ("german",), ("chinese", "japanese")])
def test_no_form_of_the_glossary_has_two_meanings(languages: tuple[str, ...]) -> None:
    meanings: dict[str, set[str]] = {}
    for entry in glossary():
        for form in (form for language in languages for form in entry.forms[language]):
            meanings.setdefault(form, set()).add(entry.english)
    assert {form: english for form, english in meanings.items() if len(english) > 1} == {}


def test_the_glossary_covers_most_entries_in_every_language() -> None:
    for language in ("chinese", "spanish", "german", "japanese"):
        assert sum(bool(entry.forms[language]) for entry in glossary()) >= 0.95 * len(glossary())


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
