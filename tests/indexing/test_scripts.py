"""Twenty scripts, right to left, emoji, NUL and half surrogates: no crash, and texts come back as they were written."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, Settings, UnknownServerError, UnknownTagError
from toolscout.errors import to_wire

pytestmark = guarantee("text:scripts")

SCRIPTS = {
    "arabic": "إرسال رسالة إلى الفريق",
    "armenian": "ուղարկել նամակ թիմին",
    "bengali": "দলকে একটি বার্তা পাঠান",
    "burmese": "စာပို့ပါ",
    "chinese": "向团队发送消息",
    "cyrillic": "отправить сообщение команде",
    "devanagari": "टीम को संदेश भेजें",
    "ethiopic": "ለቡድኑ መልእክት ይላኩ",
    "georgian": "გაუგზავნეთ შეტყობინება გუნდს",
    "greek": "στείλε μήνυμα στην ομάδα",
    "gujarati": "ટીમને સંદેશ મોકલો",
    "hangul": "팀에게 메시지를 보내세요",
    "hebrew": "שלח הודעה לצוות",
    "japanese": "チームにメッセージを送る",
    "kannada": "ತಂಡಕ್ಕೆ ಸಂದೇಶ ಕಳುಹಿಸಿ",
    "khmer": "ផ្ញើសារទៅក្រុម",
    "lao": "ສົ່ງຈົດໝາຍ",
    "latin": "Añade una carta für Größe, équipe, İstanbul, ﬁle",
    "malayalam": "ടീമിന് സന്ദേശം അയയ്ക്കുക",
    "tamil": "குழுவிற்கு செய்தி அனுப்பு",
    "telugu": "బృందానికి సందేశం పంపండి",
    "thai": "ส่งข้อความถึงทีม",
    "tibetan": "ཡི་གེ་སྐུར་",
    "vietnamese": "gửi tin nhắn cho đội",
    "emoji": "👩‍👩‍👧‍👦 📨 🏳️‍🌈",
    "words and emoji": "📧 отправь 👩‍👩‍👧‍👦 🏳️‍🌈",
    "mixed": "שלח message إلى 团队",
    "bidi": "a\u202eb\u202cc\u200fd",
    "astral": "𝒮𝑒𝓃𝒹 𠮷野家",
}
WITHOUT_WORDS = {"emoji", "bidi"}
ROWS = [
    {
        "server": f"server {text}",
        "name": f"tool {text}",
        "description": text,
        "category": text,
        "tags": [text],
        "input_schema": {"properties": {text: {"description": text, "enum": [text]}}},
        "examples": [text],
    }
    for text in SCRIPTS.values()
]
NO_TEXT = {
    "NUL": "send\x00mail",
    "NUL alone": "\x00",
    "100 times NUL": "\x00" * 100,
    "half a pair": "send \ud83d mail",
    "half a pair alone": "\ud800",
    "the other half": "\udc00",
    "the other half inside": "x\udfffy",
    "swapped halves": "\udc00\ud83d",
    "control characters": "\x1b[31msend\x07\r\n",
    "bidi": "\u202esend\u202c \u2066mail\u2069",
    "zero width": "se\u200bnd\ufeff",
    "byte order mark": "\ufeff",
    "noncharacters": "\uffff\U0010ffff",
    "combining only": "\u0301\u0308",
    "spaces of all kinds": "\u00a0\u2003\u3000x",
    "brackets and braces": "{text} {0} %s \\ ' \" ; -- [",
}
RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")


@pytest.fixture(scope="module", params=["memory", "sqlite"])
async def scout(
    request: pytest.FixtureRequest, embedder: Any, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Scout]:
    """Return a scout over tools in all scripts. The one on SQLite was closed and opened again."""
    folder: Path = tmp_path_factory.mktemp("scripts")
    file, settings = folder / "tools.jsonl", Settings(quarantine=False)
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS), encoding="utf-8")
    url = "memory:" if request.param == "memory" else f"sqlite:///{folder / 'catalogue.db'}"
    async with Scout.open(tools=file, store=url, embedder=embedder, settings=settings) as first:
        if request.param == "memory":
            yield first
            return
    async with Scout.open(store=url, embedder=embedder, settings=settings) as reopened:
        assert (await reopened.index_tools(file)).unchanged == len(SCRIPTS)
        yield reopened


async def test_every_script_comes_back_as_it_was_written(scout: Scout) -> None:
    keys = [match.tool.key for match in await scout.list_tools()]
    tools = {match.tool.description: match.tool for match in await scout.get_tool_details(keys)}
    assert len(tools) == len(SCRIPTS)
    for written in SCRIPTS.values():
        text = unicodedata.normalize("NFC", written)
        tool = tools[text]
        assert (tool.name, tool.server_title) == (f"tool {text}", f"server {text}")
        assert (tool.category, tool.tags, tool.examples) == (text, (text,), (text,))
        assert tool.input_schema == {"properties": {text: {"description": text, "enum": [text]}}}


@pytest.mark.parametrize("ranker", RANKERS)
async def test_every_script_is_found_by_its_words(scout: Scout, ranker: str) -> None:
    for script, text in SCRIPTS.items():
        answer = await scout.search_tools(text, ranker=ranker, threshold=0, top_k=5)
        if script not in WITHOUT_WORDS and ranker != "semantic":
            matches = answer[:5] if ranker == "boosted" else answer[:3]
            assert unicodedata.normalize("NFC", text) in {match.tool.description for match in matches}, script
            assert json.loads(json.dumps(answer.to_dict()))["tools"]


async def test_every_script_works_as_a_tag(scout: Scout) -> None:
    for text in SCRIPTS.values():
        tag = unicodedata.normalize("NFC", text)
        assert [match.tool.tags for match in await scout.find_by_tags([text])] == [(tag,)]


@pytest.mark.parametrize("kind", NO_TEXT)
@pytest.mark.parametrize("ranker", RANKERS)
async def test_a_query_that_is_no_text_breaks_nothing(scout: Scout, kind: str, ranker: str) -> None:
    answer = await scout.search_tools(NO_TEXT[kind], ranker=ranker, explain=True)
    json.dumps(answer.to_dict(), ensure_ascii=False).encode("utf-8")
    assert answer.metadata.degraded is None


@pytest.mark.parametrize("kind", NO_TEXT)
async def test_a_key_or_a_filter_that_is_no_text_finds_nothing_and_breaks_nothing(scout: Scout, kind: str) -> None:
    for request in (scout.find_by_tags([NO_TEXT[kind]]), scout.search_tools("send", servers=[NO_TEXT[kind]])):
        with pytest.raises((UnknownServerError, UnknownTagError)) as refused:
            await request
        json.dumps(to_wire(refused.value), ensure_ascii=False).encode("utf-8")
    key = next(match.tool.key for match in await scout.list_tools())
    answer = await scout.get_tool_details([key, NO_TEXT[kind]])
    assert len(answer) == 1
    "".join(answer.suggestions).encode("utf-8")


@pytest.mark.parametrize("kind", NO_TEXT)
async def test_a_definition_that_is_no_text_is_indexed_or_dropped_with_a_reason(kind: str) -> None:
    text = NO_TEXT[kind]
    rows: list[dict[str, Any]] = [
        {"name": text, "description": "x"},
        {"name": "described", "description": text},
        {"name": "tagged", "tags": [text], "keywords": [text], "examples": [text], "category": text},
        {"name": "typed", "input_schema": {"properties": {text: {"description": text, "enum": [text]}}}},
        {"name": "served", "server": text},
        {"name": "good", "description": "Count sheep"},
    ]
    async with Scout.open(store="memory:", embedder=HashEmbedder()) as scout:
        report = await scout.index_tools(rows)
        assert report.new + len(report.dropped) == len(rows)
        assert all(item.reason for item in report.dropped)
        answer = await scout.list_tools(detail="full")
        json.dumps(answer.to_dict(), ensure_ascii=False).encode("utf-8")
        assert "local__good" in [match.tool.key for match in answer]
        assert (await scout.index_tools(rows)).unchanged == report.new


async def test_nul_and_half_surrogates_live_in_a_file_and_come_back(
    open_scout: Callable[..., Scout], tmp_path: Path
) -> None:
    texts = [*NO_TEXT.values(), "\r\n"]
    rows = [
        {
            "server": f"server {text}",
            "name": f"tool{number}",
            "description": text,
            "tags": [text],
            "keywords": [text],
            "input_schema": {"properties": {text: {"enum": [text], "description": text}}},
            "examples": [text],
        }
        for number, text in enumerate(texts)
    ]
    options = {"store": f"sqlite:///{tmp_path / 'catalogue.db'}", "settings": Settings(quarantine=False)}
    async with open_scout(**options) as scout:
        report = await scout.index_tools(rows)
        assert (report.new, report.dropped) == (len(texts), ())
    async with open_scout(**options) as scout:
        tools = {match.tool.name: match.tool for match in await scout.list_tools(detail="full")}
        for number, text in enumerate(texts):
            stored = text.encode("utf-8", "replace").decode("utf-8")
            assert tools[f"tool{number}"].input_schema["properties"][stored]["enum"] == [stored]
        again = await scout.index_tools(rows)
    assert (again.unchanged, again.dropped) == (len(texts), ())
