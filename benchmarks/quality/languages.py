"""Requests and descriptions in Chinese, Spanish, German and Japanese, on the bundled sample.

    python -m benchmarks.quality.languages

50 tools have a request and a description in each language. 24 more have only requests, which were not used to make the
glossary. The column `without` is measured without the glossary.
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
LANGUAGES = {"en": "English", "zh": "Chinese", "es": "Spanish", "de": "German", "ja": "Japanese"}


async def rate(scout: Scout, asked: list[dict[str, Any]], language: str) -> dict[str, float]:
    """Return recall@5, recall@1 and how many requests were answered with nothing, at the default threshold."""
    found = [[m.tool.key for m in await scout.search_tools(row["query"][language], top_k=5)] for row in asked]
    pairs = list(zip(asked, found, strict=True))
    return {
        "recall@5": sum(row["tool"] in keys for row, keys in pairs) / len(pairs),
        "recall@1": sum(keys[:1] == [row["tool"]] for row, keys in pairs) / len(pairs),
        "empty": sum(not keys for keys in found) / len(pairs),
    }


async def main() -> None:
    """Measure with and without the glossary, and write the table."""
    data = rows(DATA)
    known, unseen = [row for row in data if "unseen" not in row], [row for row in data if "unseen" in row]
    tools = [json.loads(line) for line in Path(sample.path()).read_text("utf-8").splitlines()]
    result: dict[str, Any] = {}
    read = request.to_english
    for label, reader in (("with", read), ("without", lambda _: None)):
        request.to_english = reader
        for language in LANGUAGES:
            found: dict[str, Any] = {}
            async with Scout.open(tools=tools, store="memory:") as scout:
                found["english descriptions"] = await rate(scout, known, language)
                found["english descriptions, unseen"] = await rate(scout, unseen, language)
            if language != "en":
                said = {row["tool"]: row["description"][language] for row in known}
                own = [
                    {**tool, "description": said.get(f"{tool['server']}__{tool['name']}", tool["description"])}
                    for tool in tools
                ]
                async with Scout.open(tools=own, store="memory:") as scout:
                    found["own descriptions"] = await rate(scout, known, language)
                    found["own descriptions, asked in English"] = await rate(scout, known, "en")
            result.setdefault(language, {})[label] = found
    request.to_english = read
    report(result)


def report(result: dict[str, Any]) -> None:
    """Write the table."""
    kinds = list(dict.fromkeys(kind for found in result.values() for kind in found["with"]))
    body = [
        [LANGUAGES[language]]
        + [
            f"{found['with'][kind]['recall@5']:.2f} ({found['with'][kind]['empty']:.2f}), "
            f"{found['without'][kind]['recall@5']:.2f} ({found['without'][kind]['empty']:.2f})"
            if kind in found["with"]
            else ""
            for kind in kinds
        ]
        for language, found in result.items()
    ]
    text = ["# Languages", "", f"`python -m benchmarks.quality.languages`; {machine()}", ""]
    text += [(__doc__ or "").split("\n\n")[-1].strip(), ""]
    text += ["recall@5 (share answered with nothing), with the glossary, then without:", ""]
    text += [markdown(["requests in", *kinds], body)]
    save("languages", {"machine": machine(), "languages": result}, "\n".join(text))


if __name__ == "__main__":
    asyncio.run(main())
