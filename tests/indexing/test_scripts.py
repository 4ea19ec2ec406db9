"""Twenty scripts, right to left, emoji, NUL and half surrogates: no crash, and a true round trip through a file."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantees import guarantee
from toolscout import Scout, Settings

pytestmark = guarantee("text:scripts")

SCRIPTS = {
    "arabic": "إرسال رسالة إلى الفريق",
    "armenian": "ուղարկել նամակ թիմին",
    "bengali": "দলকে একটি বার্তা পাঠান",
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
    "latin": "envía un mensaje al équipe, größer",
    "malayalam": "ടീമിന് സന്ദേശം അയയ്ക്കുക",
    "tamil": "குழுவிற்கு செய்தி அனுப்பு",
    "telugu": "బృందానికి సందేశం పంపండి",
    "thai": "ส่งข้อความถึงทีม",
    "vietnamese": "gửi tin nhắn cho đội",
    "emoji": "👩‍👩‍👧‍👦 📨 🏳️‍🌈",
    "mixed": "שלח message إلى 团队",
    "bidi": "a\u202eb\u202cc\u200fd",
    "astral": "𝒮𝑒𝓃𝒹 𠮷野家",
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Give the address of a catalogue in a file."""
    return f"sqlite:///{tmp_path / 'catalogue.db'}"


async def test_every_script_comes_back_as_it_was_written(
    open_scout: Callable[..., Scout], store: str, tmp_path: Path
) -> None:
    rows = [
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
    file = tmp_path / "tools.jsonl"
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    async with open_scout(store=store, settings=Settings(quarantine=False)) as scout:
        report = await scout.index_tools(file)
        assert (report.new, report.dropped) == (len(SCRIPTS), ())
    async with open_scout(store=store, settings=Settings(quarantine=False)) as scout:
        listed = [match.tool.key for match in await scout.list_tools()]
        tools = {match.tool.description: match.tool for match in await scout.get_tool_details(listed)}
        again = await scout.index_tools(file)
    assert again.unchanged == len(SCRIPTS)
    for row in rows:
        text = unicodedata.normalize("NFC", str(row["description"]))
        tool = tools[text]
        assert (tool.name, tool.server_title) == (f"tool {text}", f"server {text}")
        assert (tool.category, tool.tags, tool.examples) == (text, (text,), (text,))
        assert tool.input_schema == {"properties": {text: {"description": text, "enum": [text]}}}


@pytest.mark.parametrize("ranker", ["hybrid", "semantic", "keyword", "fuzzy", "boosted"])
async def test_every_script_can_be_searched_for(open_scout: Callable[..., Scout], ranker: str) -> None:
    rows = [{"name": script, "description": text} for script, text in SCRIPTS.items()]
    async with open_scout(rows) as scout:
        for script, text in SCRIPTS.items():
            answer = await scout.search_tools(text, ranker=ranker, threshold=0)
            if script not in ("emoji", "bidi") and ranker != "semantic":
                assert script in {match.tool.name for match in answer[:5]}, script


async def test_nul_and_half_surrogates_crash_nothing(open_scout: Callable[..., Scout], store: str) -> None:
    nasty = ["\x00", "a\x00b", "\ud800", "x\udfffy", "\ufeff", "\uffff", "\x1b[31m", "\r\n", "\u0000" * 100]
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
        for number, text in enumerate(nasty)
    ]
    async with open_scout(store=store, settings=Settings(quarantine=False)) as scout:
        report = await scout.index_tools(rows)
        assert (report.new, report.dropped) == (len(nasty), ())
    async with open_scout(store=store, settings=Settings(quarantine=False)) as scout:
        tools = {match.tool.name: match.tool for match in await scout.list_tools(detail="full")}
        for number, text in enumerate(nasty):
            written = text.encode("utf-8", "replace").decode("utf-8")
            assert tools[f"tool{number}"].input_schema["properties"][written]["enum"] == [written]
        for text in nasty:
            for ranker in ("hybrid", "semantic", "keyword", "fuzzy", "boosted"):
                if text.strip():
                    await scout.search_tools(text, ranker=ranker)
        again = await scout.index_tools(rows)
    assert (again.unchanged, again.dropped) == (len(nasty), ())
