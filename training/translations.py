"""Pairs of an English text and its translation, from the user interfaces of open-source packages.

``translations.tsv`` lists the packages with their licences and digests. Their wheels contain message catalogues:
gettext files, or JSON files with the same keys in every language.
"""

from __future__ import annotations

import gettext
import hashlib
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

SOURCES = Path(__file__).with_name("translations.tsv")
_GETTEXT = re.compile(r".*/([A-Za-z_@-]+)/LC_MESSAGES/[^/]+\.(?:mo|po)$")
_JSON = (
    re.compile(r"(?P<start>.*/translations/)(?P<code>[A-Za-z-]+)(?P<end>\.json)$"),
    re.compile(r"(?P<start>.*/static/translations/(?:.*/)?)(?P<code>[A-Za-z-]+)(?P<end>-[0-9a-f]{8,}\.json)$"),
    re.compile(r"(?P<start>.*/i18n/locales/)(?P<code>[A-Za-z-]+)(?P<end>/[^/]+\.json)$"),
    re.compile(r"(?P<start>.*/locale/)(?P<code>[A-Za-z_-]+)(?P<end>/LC_MESSAGES/[^/]+\.json)$"),
)
_HASH = re.compile(r"-[0-9a-f]{8,}\.json$")
_MARKUP = re.compile(r"%\([^)]*\)[sdif]|%[sdif]|\{[^}]*\}|<[^>]*>|&\w+;|https?://\S+|\[\[?%?[\w:]*\]?\]?")


@dataclass(frozen=True, slots=True, order=True)
class Translation:
    """A text of a user interface in English and in another language."""

    is_home: bool
    """Whether it is from Home Assistant, which has more texts than all others together, most of them about devices."""
    english: str
    other: str


def read_translations(folder: Path, languages: tuple[str, ...]) -> Mapping[str, list[Translation]]:
    """Return the translations by language, sorted. Fails if a wheel is missing or is another one."""
    pairs: dict[str, set[Translation]] = {language: set() for language in languages}
    for line in SOURCES.read_text("utf-8").splitlines()[1:]:
        file, _, digest = line.split("\t")
        data = (folder / file).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise SystemExit(f"{file} is not the file that the tables were made from")
        is_home = file.startswith(("homeassistant-", "home_assistant_frontend-"))
        for code, english, other in _catalogues(ZipFile(io.BytesIO(data))):
            language = re.split("[-_@]", code)[0].lower()
            source, target = _clean(english), _clean(other)
            if language in pairs and source and target and source != target:
                pairs[language].add(Translation(is_home, source, target))
    return {language: sorted(own) for language, own in pairs.items()}


def _catalogues(wheel: ZipFile) -> Iterator[tuple[str, str, str]]:
    """Yield the code of a language, an English text and its translation."""
    names = set(wheel.namelist())
    for name in sorted(names):
        if match := _GETTEXT.match(name):
            if name.endswith(".mo"):
                yield from ((match[1], *pair) for pair in _compiled(wheel.read(name)))
            elif f"{name[:-2]}mo" not in names:
                yield from ((match[1], *pair) for pair in _source(wheel.read(name).decode("utf-8", "replace")))
            continue
        for pattern in _JSON:
            match = pattern.match(name)
            original = _english_file(match, names) if match else None
            if match and original:
                english = dict(_texts(json.loads(wheel.read(original))))
                texts = _texts(json.loads(wheel.read(name)))
                yield from ((match["code"], english[key], text) for key, text in texts if key in english)
                break


def _english_file(match: re.Match[str], names: set[str]) -> str | None:
    if match["end"].startswith("-"):
        start = f"{match['start']}en-"
        return next((name for name in names if name.startswith(start) and _HASH.match(name[len(start) - 1 :])), None)
    name = f"{match['start']}en{match['end']}"
    return name if name in names else None


def _compiled(data: bytes) -> Iterator[tuple[str, str]]:
    try:
        catalogue: Mapping[Any, Any] = gettext.GNUTranslations(io.BytesIO(data))._catalog  # type: ignore[attr-defined]  # noqa: SLF001
    except (OSError, UnicodeDecodeError, ValueError):
        return
    for key, text in catalogue.items():
        english = key[0] if isinstance(key, tuple) else key
        if english and isinstance(text, str):
            yield english.split("\x04")[-1], text


def _source(text: str) -> Iterator[tuple[str, str]]:
    """Read a `.po` file. Plural forms are left out."""
    for entry in re.split(r"\n\s*\n", text):
        parts = dict(re.findall(r'^(msgid|msgstr) ((?:".*"\s*)+)', entry, re.MULTILINE))
        if len(parts) == 2:
            unquote: Callable[[str], str] = lambda value: "".join(json.loads(part) for part in value.splitlines())  # noqa: E731
            try:
                yield unquote(parts["msgid"].strip()), unquote(parts["msgstr"].strip())
            except ValueError:
                continue


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}")


def _clean(text: str) -> str:
    """Remove markup, placeholders and marks of shortcut keys."""
    return " ".join(_MARKUP.sub(" ", html.unescape(text)).replace("&", "").replace("_", " ").split())
