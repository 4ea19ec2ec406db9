"""Text of every kind goes in, is found, and comes back as it was; what is no text at all breaks nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, UnknownServerError, UnknownTagError
from toolscout.discovery.format import format_answer
from toolscout.errors import to_wire

pytestmark = guarantee("text:scripts")

SCRIPTS = {
    "amharic": "ደብዳቤ ላክ",
    "arabic": "أرسل رسالة بريد إلكتروني",
    "armenian": "ուղարկել նամակ",
    "bengali": "চিঠি পাঠান",
    "burmese": "စာပို့ပါ",
    "chinese": "发送电子邮件",
    "cyrillic": "отправить письмо",
    "devanagari": "पत्र भेजें",
    "emoji": "📧 отправь 👩‍👩‍👧‍👦 🏳️‍🌈",
    "georgian": "წერილის გაგზავნა",
    "greek": "στείλε γράμμα",
    "gujarati": "પત્ર મોકલો",
    "hebrew": "שלח מכתב",
    "japanese": "メールを送信する",
    "khmer": "ផ្ញើសំបុត្រ",
    "korean": "편지 보내기",
    "lao": "ສົ່ງຈົດໝາຍ",
    "latin": "Añade una carta für Größe, İstanbul, ﬁle",
    "tamil": "கடிதம் அனுப்பு",
    "telugu": "లేఖ పంపండి",
    "thai": "ส่งจดหมาย",
    "tibetan": "ཡི་གེ་སྐུར་",
}
ROWS = [
    {"name": f"tool_{name}", "description": text, "tags": [text], "input_schema": {"properties": {text: {}}}}
    for name, text in SCRIPTS.items()
]
NO_TEXT = {
    "NUL": "send\x00mail",
    "half a pair": "send \ud83d mail",
    "the other half": "\udc00",
    "swapped halves": "\udc00\ud83d",
    "control characters": "\x1b[31msend\x07\r\n",
    "bidi": "\u202esend\u202c \u2066mail\u2069",
    "zero width": "se\u200bnd\ufeff",
    "noncharacters": "\uffff\U0010ffff",
    "combining only": "\u0301\u0308",
    "spaces of all kinds": "\u00a0\u2003\u3000x",
    "brackets and braces": "{text} {0} %s \\ ' \" ; -- [",
}


@pytest.fixture(scope="module", params=["memory", "sqlite"])
async def scout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scout]:
    folder: Path = tmp_path_factory.mktemp("scripts")
    url = "memory:" if request.param == "memory" else f"sqlite:///{folder / 'catalogue.db'}"
    async with Scout.open(tools=ROWS, store=url, embedder=HashEmbedder()) as opened:
        yield opened


@pytest.mark.parametrize("script", SCRIPTS)
async def test_every_script_comes_back_as_it_went_in(scout: Scout, script: str) -> None:
    tool = (await scout.get_tool_details(f"local__tool_{script}"))[0].tool
    text = SCRIPTS[script]
    assert (tool.description, tool.tags, list(tool.input_schema["properties"])) == (text, (text,), [text])


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("ranker", ["hybrid", "keyword", "fuzzy"])
async def test_every_script_is_found_by_its_words(scout: Scout, script: str, ranker: str) -> None:
    answer = await scout.search_tools(SCRIPTS[script], ranker=ranker, threshold=0, top_k=3)
    assert f"tool_{script}" in [match.tool.name for match in answer]
    assert json.loads(json.dumps(format_answer(answer)))["tools"]


@pytest.mark.parametrize("script", SCRIPTS)
async def test_every_script_works_as_a_tag(scout: Scout, script: str) -> None:
    assert [match.tool.name for match in await scout.find_by_tags([SCRIPTS[script]])] == [f"tool_{script}"]


@pytest.mark.parametrize("kind", NO_TEXT)
@pytest.mark.parametrize("ranker", ["hybrid", "semantic", "keyword", "fuzzy", "boosted"])
async def test_a_query_that_is_no_text_breaks_nothing(scout: Scout, kind: str, ranker: str) -> None:
    answer = await scout.search_tools(NO_TEXT[kind], ranker=ranker, explain=True)
    json.dumps(format_answer(answer), ensure_ascii=False).encode("utf-8")
    assert answer.metadata.degraded is None


@pytest.mark.parametrize("kind", NO_TEXT)
async def test_a_query_that_is_no_text_breaks_nothing_of_the_real_model(embedder: object, kind: str) -> None:
    async with Scout.open(tools=ROWS[:2], embedder=embedder) as scout:
        assert (await scout.search_tools(NO_TEXT[kind])).metadata.degraded is None


@pytest.mark.parametrize("kind", NO_TEXT)
async def test_a_definition_that_is_no_text_is_indexed_or_dropped_with_a_reason(kind: str) -> None:
    text = NO_TEXT[kind]
    bad = [
        {"name": text, "description": "x"},
        {"name": "described", "description": text},
        {"name": "tagged", "tags": [text], "keywords": [text], "examples": [text], "category": text},
        {"name": "typed", "input_schema": {"properties": {text: {"description": text, "enum": [text]}}}},
        {"name": "served", "server": text},
        {"name": "good", "description": "Count sheep"},
    ]
    async with Scout.open(store="memory:", embedder=HashEmbedder()) as scout:
        report = await scout.index_tools(bad)
        assert report.new + len(report.dropped) == len(bad)
        assert all(item.reason for item in report.dropped)
        listed = await scout.list_tools(detail="full")
        json.dumps(format_answer(listed), ensure_ascii=False).encode("utf-8")
        assert "local__good" in [match.tool.key for match in listed]
        assert (await scout.index_tools(bad)).unchanged == report.new


@pytest.mark.parametrize("kind", NO_TEXT)
async def test_a_key_or_a_filter_that_is_no_text_finds_nothing_and_breaks_nothing(scout: Scout, kind: str) -> None:
    for asked in (scout.find_by_tags([NO_TEXT[kind]]), scout.search_tools("send", servers=[NO_TEXT[kind]])):
        with pytest.raises((UnknownServerError, UnknownTagError)) as refused:
            await asked
        json.dumps(to_wire(refused.value), ensure_ascii=False).encode("utf-8")
    found = await scout.get_tool_details(["local__tool_greek", NO_TEXT[kind]])
    assert len(found) == 1
    "".join(found.suggestions).encode("utf-8")
