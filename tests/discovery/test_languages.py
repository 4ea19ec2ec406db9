"""Other languages: requests are translated word by word, descriptions are found by their own words."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolscout import Scout
from toolscout.discovery.language import LANGUAGES, function_words, possible_languages
from toolscout.discovery.request import understand
from toolscout.discovery.translation import read_lexicon, to_english
from toolscout.models import Query

ROWS = [json.loads(line) for line in (Path(__file__).parent / "languages.jsonl").read_text("utf-8").splitlines()]
KNOWN = [row for row in ROWS if "unseen" not in row]
UNSEEN = [row for row in ROWS if "unseen" in row]
DESCRIBED = ("zh", "es", "de", "ja")
"""The languages in which there are descriptions as well."""


async def recall(scout: Scout, rows: Sequence[dict[str, Any]], language: str) -> float:
    right = 0
    for row in rows:
        answer = await scout.search_tools(row["query"][language], top_k=5, threshold=0)
        right += row["tool"] in [match.tool.key for match in answer]
    return right / len(rows)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_requests_in_another_language_find_tools_described_in_english(sample_scout: Scout, language: str) -> None:
    assert await recall(sample_scout, UNSEEN, language) >= 0.75


@pytest.mark.parametrize("language", DESCRIBED)
async def test_fifty_more_requests_find_theirs(sample_scout: Scout, language: str) -> None:
    assert await recall(sample_scout, KNOWN, language) >= 0.8


@pytest.mark.fuzz
@pytest.mark.parametrize("language", DESCRIBED)
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
        ("查询数据库", "query database"),
        ("descargar el archivo adjunto", "download file attachment"),
        ("¿Cuál es el pronóstico del tiempo para mañana?", "forecast time tomorrow"),
        ("envoyer un courriel", "send email"),
        ("отправить письмо", "send email"),
        ("메모 저장", "note save"),
        ("SQL 쿼리", "SQL query"),
        ("Das Ticket auf erledigt setzen", "Ticket completed set"),
        ("que es kubernetes", "kubernetes"),
    ],
)
def test_a_request_is_translated_word_by_word(text: str, english: str) -> None:
    assert to_english(text) == english


def test_other_forms_of_a_word_and_compounds_are_known() -> None:
    assert to_english("이메일에서") == to_english("이메일") == "email"
    assert to_english("die Projektdateien") == "project files"
    assert to_english("que paginas hay") == to_english("qué páginas hay")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "send an email",
        "find hotels in Los Angeles",
        "El Paso weather",
        "São Paulo weather",
        "Der Spiegel articles",
        "test report",
        "discord",
        "postgres",
        "todoist webhook",
        "machine status",
        "linkedin repost",
        "café nearby",
        "résumé parser",
        "Zoë Müller contact details",
        "serch teh emial",
        "list the pods in a cluster and restart die hard",
        "Show me the de facto standard for La Paz",
        "I marked a line about 沉没成本 somewhere, find it",
        "the way from 杭州市西湖区龙井路 to 杭州市上城区河坊街",
        "translate 'wo ist der Bahnhof' for me",
        'Send "¡Nuevos apuntes de Anatomía ya disponibles!" to these students',
    ],
)
def test_english_names_and_typos_are_not_another_language(text: str) -> None:
    assert possible_languages(text) == ()
    assert to_english(text) is None


def test_no_request_of_the_sample_is_another_language(sample_rows: list[dict[str, Any]]) -> None:
    texts = [row["description"] for row in sample_rows] + [row["query"]["en"] for row in ROWS]
    assert [text for text in texts if possible_languages(text)] == []


@pytest.mark.parametrize("text", ["der die das", "como estas", "печь хлеб"])
def test_what_has_no_known_word_stays_as_it_is(text: str) -> None:
    assert to_english(text) is None


def test_the_original_is_searched_for_beside_its_translation() -> None:
    request = understand(Query(text="发送邮件"))
    assert (request.text, request.whole.text) == ("发送邮件", "send email")
    assert [intent.text for intent in request.intents] == ["send email", "send email", "发送邮件"]
    assert request.clauses == ()
    unread = understand(Query(text="发送邮件", ranker="keyword"))
    assert (unread.whole.text, unread.original) == ("发送邮件", None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_table_has_enough_words_and_each_can_be_used(language: str) -> None:
    lexicon = read_lexicon(language)
    assert len(lexicon.words) >= 1_500
    assert sum(map(bool, lexicon.words.values())) >= 0.8 * len(lexicon.words)
    for word, english in lexicon.words.items():
        assert word and word == word.lower().strip(), word
        assert not english or (english.isascii() and english.islower()), english


def test_function_words_are_of_languages_that_can_be_translated() -> None:
    assert set(function_words().by_language) < set(LANGUAGES)


def test_a_long_request_is_translated_in_bounded_time() -> None:
    to_english("查询数据库")
    started = time.process_time()
    to_english("查询数据库" * 800)
    assert time.process_time() - started < 1


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
async def test_a_request_that_nothing_fits_gets_no_sure_hit_in_any_language(sample_scout: Scout, query: str) -> None:
    answer = await sample_scout.search_tools(query)
    assert {match.fit for match in answer} <= {"weak"}
    assert answer.suggestions


@pytest.mark.parametrize("text", ["发\ud83d送邮件", "送\x00信", "メ" * 3_000, "für " * 900, "ñ", "邮"])
async def test_strange_text_in_another_script_breaks_nothing(sample_scout: Scout, text: str) -> None:
    assert (await sample_scout.search_tools(text)).metadata.degraded is None


async def test_an_explained_hit_shows_the_english_that_was_searched_for(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("给客户退款", explain=True)
    assert answer[0].tool.key == "stripe__create_refund"
    assert (answer[0].explain or {})["intent"] == "customer refunded"
