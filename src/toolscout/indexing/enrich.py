"""Compute what a tool is found by: inferred labels, the document that is embedded, and its words with their weights."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from toolscout.indexing.normalize import canonical_json
from toolscout.indexing.taxonomy import infer_labels, taxonomy_version
from toolscout.models import LOCAL, Document, Entry, Terms, Tool
from toolscout.text import count_tokens, split_words, terms

_REVISION = 4
"""Raise it when the document or the words of an unchanged tool change, so that all tools are indexed again."""

NAME, SERVER, DESCRIPTION, PARAMETERS, LABELS, KEYWORDS = 1, 2, 4, 8, 16, 32
"""The fields of a tool as bits. The mask of a term says where it occurs."""

_WEIGHT = {NAME: 3.0, SERVER: 1.5, DESCRIPTION: 1.0, PARAMETERS: 0.4, LABELS: 0.5, KEYWORDS: 2.5}
_AVERAGE = {NAME: 3.0, SERVER: 2.0, DESCRIPTION: 18.0, PARAMETERS: 20.0, LABELS: 3.0, KEYWORDS: 6.0}
_LENGTH_NORM = {NAME: 0.3, SERVER: 0.3, DESCRIPTION: 0.6, PARAMETERS: 0.6, LABELS: 0.3, KEYWORDS: 0.3}
_SATURATION = 1.2
_PARAMETER_DEPTH = 3
_MAX_PARAMETERS = 60
_MAX_ENUM_VALUES = 20
_MAX_LABEL_CHARACTERS = 160
_MAX_DETAIL_CHARACTERS = 400
_NONE_SENT: Mapping[str, Any] = {"category": "", "tags": (), "capabilities": ()}


def stamp_of(tool: Tool) -> str:
    """Hash everything that decides what is stored for a tool. An equal stamp means that nothing has to be done."""
    inputs = (
        _REVISION,
        taxonomy_version(),
        tool.fingerprint,
        tool.server_title,
        tool.description,
        tool.category,
        tool.tags,
        tool.keywords,
        tool.capabilities,
        tool.examples,
        tool.related,
        tool.owner,
        tool.enabled,
        tool.trusted,
        tool.quarantine_reason,
    )
    return hashlib.blake2b(canonical_json(inputs).encode("utf-8", "replace"), digest_size=16).hexdigest()


def restamp(tool: Tool, before: Tool, stamp: str) -> str:
    """Return the stamp of a published tool after a new decision about it, so that indexing does not repeat the work.

    A stamp covers the labels that were sent, not those that were inferred. Which ones were inferred is not stored.
    It is found by trying: the combination that gives the present `stamp` is the right one.
    """
    if tool == before:
        return stamp
    for count in range(len(_NONE_SENT) + 1):
        for names in combinations(_NONE_SENT, count):
            labels = {name: _NONE_SENT[name] for name in names}
            if stamp_of(replace(before, **labels)) == stamp:
                return stamp_of(replace(tool, **labels))
    return stamp_of(tool)


def enrich_tool(tool: Tool) -> Entry:
    """Return the entry to publish. Labels from the author and the operator win over inferred ones."""
    stamp = stamp_of(tool)
    inferred = infer_labels(
        name=split_words(tool.name), server=split_words(tool.server_title), description=split_words(tool.description)
    )
    tool = replace(
        tool,
        category=tool.category or inferred.category,
        tags=tool.tags or inferred.tags,
        capabilities=tool.capabilities or inferred.capabilities,
    )
    document = to_document(tool)
    return Entry(
        tool=tool,
        document=document,
        text_hash=text_hash(document),
        terms=weighted_terms(tool),
        tokens=count_tokens({"name": tool.key, "description": tool.description, "input_schema": tool.input_schema}),
        stamp=stamp,
    )


def to_document(tool: Tool) -> Document:
    """Return the text of a tool that is embedded: identifiers are split into words, the description is kept."""
    described = list(parameters(tool.input_schema))
    return Document(
        name=_plain(tool.name),
        server="" if tool.server == LOCAL else _plain(tool.server_title),
        description=tool.description,
        parameters=", ".join(_plain(name) for name, _ in described),
        labels=", ".join(dict.fromkeys(_labels(tool)))[:_MAX_LABEL_CHARACTERS],
        details="; ".join(filter(None, (text for _, text in described)))[:_MAX_DETAIL_CHARACTERS],
    )


def text_hash(document: Document) -> str:
    """Return the key of a document's vector. The same text of a thousand tenants is embedded once."""
    words = "\x00".join(
        (document.name, document.server, document.labels, document.description, document.parameters, document.details)
    )
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=16).hexdigest()


def weighted_terms(tool: Tool) -> Terms:
    """Compute the BM25F weight of each word: fields are weighted, and lengths compared with fixed averages."""
    weights: dict[str, float] = {}
    masks: dict[str, int] = {}
    for field, text in _fields(tool):
        counts = Counter(terms(text))
        length = sum(counts.values())
        norm = 1 - _LENGTH_NORM[field] + _LENGTH_NORM[field] * length / _AVERAGE[field]
        for term, count in counts.items():
            weights[term] = weights.get(term, 0.0) + _WEIGHT[field] * count / norm
            masks[term] = masks.get(term, 0) | field
    impact = array("f", (weight / (_SATURATION + weight) for weight in weights.values()))
    return Terms(words=tuple(weights), impact=impact, fields=bytes(masks.values()))


def parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a schema as (name, description and enum values). References are never followed."""
    queue: deque[tuple[int, Mapping[str, Any]]] = deque([(0, schema)])
    count = 0
    while queue:
        depth, node = queue.popleft()
        properties = node.get("properties")
        if not isinstance(properties, Mapping):
            continue
        for name, value in properties.items():
            if count >= _MAX_PARAMETERS:
                return
            count += 1
            if not isinstance(value, Mapping):
                yield name, ""
                continue
            yield name, _parameter_text(value)
            if depth + 1 < _PARAMETER_DEPTH:
                items = value.get("items")
                queue.append((depth + 1, items if isinstance(items, Mapping) else value))


def _labels(tool: Tool) -> Iterator[str]:
    """Yield the words for a tool that stand outside of its definition: the author's, and inferred ones."""
    yield from tool.keywords
    yield from tool.tags
    yield from tool.capabilities
    yield from _example_requests(tool)


def _example_requests(tool: Tool) -> Iterator[str]:
    return (example for example in tool.examples if isinstance(example, str))


def _plain(name: str) -> str:
    return " ".join(split_words(name)) or name


def _parameter_text(parameter: Mapping[str, Any]) -> str:
    parts = [str(parameter.get("description") or "")]
    values = parameter.get("enum")
    if isinstance(values, list):
        parts.extend(map(str, values[:_MAX_ENUM_VALUES]))
    return " ".join(filter(None, parts))


def _fields(tool: Tool) -> Iterator[tuple[int, str]]:
    yield NAME, f"{tool.name} {tool.title}" if tool.title and tool.title != tool.name else tool.name
    if tool.server != LOCAL:
        yield SERVER, tool.server_title
    yield DESCRIPTION, tool.description
    yield PARAMETERS, " ".join(f"{name} {text}" for name, text in parameters(tool.input_schema))
    yield LABELS, " ".join((tool.category, *tool.tags, *tool.capabilities))
    yield KEYWORDS, " ".join((*tool.keywords, *_example_requests(tool)))
