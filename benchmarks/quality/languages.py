"""Requests in seventeen languages and descriptions in five, on the bundled sample.

    python -m benchmarks.quality.languages

50 tools have a request and a description in English, Chinese, Spanish, German and Japanese. 24 others have a request in
every language. The column `without` is measured without the translation of requests.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from benchmarks.data import machine, markdown, rows, save
from toolscout import Scout, sample
from toolscout.discovery import request

DATA = Path(__file__).parents[2] / "tests" / "discovery" / "languages.jsonl"
LANGUAGES = {
    "en": "English", "ar": "Arabic", "de": "German", "es": "Spanish", "fr": "French", "hi": "Hindi", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ru": "Russian",
    "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


async def rate(scout: Scout, requests: list[dict[str, Any]], language: str) -> dict[str, float]:
    """Return recall@5 and recall@1 of all hits, and the share of requests answered with nothing by default."""
    hits = [await scout.search_tools(row["query"][language], top_k=5, threshold=0) for row in requests]
    shown = [await scout.search_tools(row["query"][language], top_k=5) for row in requests]
    pairs = [(row["tool"], [match.tool.key for match in answer]) for row, answer in zip(requests, hits, strict=True)]
    return {
        "recall@5": sum(tool in keys for tool, keys in pairs) / len(pairs),
        "recall@1": sum(keys[:1] == [tool] for tool, keys in pairs) / len(pairs),
        "empty": sum(not answer for answer in shown) / len(pairs),
    }


async def measure(language: str, data: list[dict[str, Any]]) -> dict[str, Any]:
    """Measure a language with English descriptions and, if there are any, with its own."""
    tools = [json.loads(line) for line in Path(sample.path()).read_text("utf-8").splitlines()]
    fifty, others = [row for row in data if "unseen" not in row], [row for row in data if "unseen" in row]
    results: dict[str, Any] = {}
    async with Scout.open(tools=tools, store="memory:") as scout:
        results["24 requests"] = await rate(scout, others, language)
        if language in fifty[0]["query"]:
            results["50 requests"] = await rate(scout, fifty, language)
    if language in fifty[0]["description"]:
        translated = {row["tool"]: row["description"][language] for row in fifty}
        own = [
            {**tool, "description": translated.get(f"{tool['server']}__{tool['name']}", tool["description"])}
            for tool in tools
        ]
        async with Scout.open(tools=own, store="memory:") as scout:
            results["own descriptions"] = await rate(scout, fifty, language)
            results["own descriptions, asked in English"] = await rate(scout, fifty, "en")
    return results


async def main() -> None:
    """Measure with and without translation, and write the table."""
    data = rows(DATA)
    result: dict[str, Any] = {language: {} for language in LANGUAGES}
    translate = request.to_english
    for label, reader in (("with", translate), ("without", lambda _: None)):
        request.to_english = reader
        for language in LANGUAGES:
            result[language][label] = await measure(language, data)
    request.to_english = translate
    report(result)


def report(result: dict[str, Any]) -> None:
    """Write the table."""
    kinds = ["24 requests", "50 requests", "own descriptions", "own descriptions, asked in English"]
    body = [
        [LANGUAGES[language]]
        + [
            f"{found['without'][kind]['recall@5']:.2f}, **{found['with'][kind]['recall@5']:.2f}** "
            f"({found['with'][kind]['recall@1']:.2f})"
            if kind in found["with"]
            else ""
            for kind in kinds
        ]
        for language, found in result.items()
    ]
    text = ["# Languages", "", f"`python -m benchmarks.quality.languages`; {machine()}", ""]
    text += [(__doc__ or "").split("\n\n")[-1].strip(), ""]
    text += ["recall@5 without translation, then **with it** (and recall@1):", ""]
    text += [markdown(["requests in", *kinds], body)]
    save("languages", {"machine": machine(), "languages": result}, "\n".join(text))


if __name__ == "__main__":
    asyncio.run(main())
