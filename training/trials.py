"""Requests with and without a tool that answers them: what calibration is fitted and measured on.

For every development set, as it is (`fits`) and with small random parts of it that hold the right tools (`fits-12`,
`-40`, `-150`) or lack them (`none-12`, ...); with the right tools and their equivalents taken out (`removed`); with
requests of the other sets to which nothing here is alike (`foreign`); and, where a catalogue can be added, among 4,000
and all of its tools (`fits-4000`, `fits-all`). `near` and `foreign` of `real_servers` were written as such, and so were
the near misses of `train_people` (`near-others`), which ask a server for what it cannot do.

Equivalents are judged by the untuned base model, tool against tool, never by a request: on other servers, name and
description at cosine .6 or more; on any server, whole documents above .8. `removed-narrow` takes out only the latter.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from corpus import DEVELOPMENT, PEOPLE, bench, document, item_of, plain, read_queries, read_tools, rows, strangers
from toolscout.discovery.calibration import facts_of
from toolscout.discovery.clauses import split_clauses
from toolscout.discovery.fusion import Evidence, fuse
from toolscout.discovery.request import telling_words
from toolscout.embedding.builtin import BuiltinEmbedder
from toolscout.indexing.enrich import enrich_tool
from toolscout.models import LOCAL, Document, Entry, Tool
from toolscout.text import names_server, query_terms
from toolscout.verbs import actions, other_action, wanted_action

MOST, SMALL, FOREIGN, NEAR = 300, 40, 30, 600
"""Requests of a set, of each size of small catalogue, and of each other set; near misses of `train_people`."""
AROUND = 400
"""How many tools stand around those of the server that a near miss of `train_people` asks."""
ALIKE, SAME, STRANGE = 0.6, 0.8, 0.5
"""Cosines by the base: of equivalents, of the same thing, and below which nothing is alike."""
DEPTH = 10
CROWDED = ("azure_mcp", "livemcp_step")
"""The sets that are tried among the tools of the large catalogue as well."""


@dataclass(frozen=True)
class Request:
    """One labelled request."""

    texts: tuple[str, ...]
    vectors: np.ndarray
    right: tuple[int, ...] = ()
    """The tools that it was written for."""
    also: tuple[int, ...] = ()
    """Tools that serve as well."""


@dataclass(frozen=True)
class Trial:
    """What the fused list of one request looks like, and which of its first hits are right."""

    set: str
    kind: str
    facts: dict[str, float]
    gap: np.ndarray
    right: np.ndarray

    @property
    def answerable(self) -> bool:
        """Whether the catalogue held a right tool."""
        return self.kind.startswith("fits")


class Texts:
    """Vectors of texts by two models, kept in a folder."""

    def __init__(self, cache: Path, judge: Path) -> None:
        """Open the product's model and the untuned one."""
        cache.mkdir(parents=True, exist_ok=True)
        self._cache = cache
        self._models = {"own": BuiltinEmbedder(), "judge": BuiltinEmbedder(folder=judge)}

    def documents(self, texts: Sequence[Document], model: str = "own") -> np.ndarray:
        """Return the vectors of documents."""
        words = [text.text(self._models[model].manifest.document_template) for text in texts]
        return self._kept(words, model, self._models[model].embed_documents(texts))

    def queries(self, texts: Sequence[str], model: str = "own") -> np.ndarray:
        """Return the vectors of requests."""
        return self._kept(texts, model, self._models[model].embed_queries(texts))

    def _kept(self, words: Sequence[str], model: str, work: Any) -> np.ndarray:
        mark = hashlib.sha256("\0".join((self._models[model].model_id, *words)).encode("utf-8", "replace")).hexdigest()
        path = self._cache / f"{mark[:16]}.npy"
        if path.exists():
            work.close()
        else:
            np.save(path, asyncio.run(work))
        found: np.ndarray = np.load(path)
        return found


class Catalogue:
    """The tools of one set, ready to be asked."""

    def __init__(self, tools: Sequence[dict[str, Any]], vectors: np.ndarray) -> None:
        """Index the words."""
        self.items = [item_of(tool) for tool in tools]
        self.places = {tool["id"]: place for place, tool in enumerate(tools)}
        self.servers = np.array([item.server for item in self.items])
        self.titles, self.title_of = np.unique(self.servers, return_inverse=True)
        self.actions = np.array([actions(item.name) for item in self.items], dtype=np.int64)
        self.vectors = vectors
        self._words: dict[str, tuple[list[int], list[float]]] = {}
        for place, tool in enumerate(tools):
            held = entry_of(tool).terms
            for term, impact in zip(held.words, held.impact, strict=True):
                rows, impacts = self._words.setdefault(term, ([], []))
                rows.append(place)
                impacts.append(impact)

    def judge(self, texts: Texts) -> None:
        """Add the vectors by which equivalents are told."""
        self.whole = texts.documents([document(item) for item in self.items], "judge")
        self.gist = texts.queries([f"{plain(item.name)}: {item.description[:300]}" for item in self.items], "judge")

    def equivalents(self, right: Sequence[int], *, narrow: bool = False) -> np.ndarray:
        """Mark the right tools and those that do the same."""
        gone: np.ndarray = (self.whole @ self.whole[list(right)].T).max(axis=1) > SAME
        for place in () if narrow else right:
            elsewhere = (self.servers != self.servers[place]) | (self.servers[place] == "")
            gone |= elsewhere & (self.gist @ self.gist[place] > ALIKE)
        gone[list(right)] = True
        return gone

    def without(self, request: Request, *, narrow: bool = False) -> np.ndarray:
        """Return the places of the tools that do not do what is asked."""
        return np.flatnonzero(~self.equivalents((*request.right, *request.also), narrow=narrow))

    def evidence(self, request: Request, rows: np.ndarray, *, by_words: bool = False) -> Evidence:
        """Return what the product knows when it sees only these tools (it looks at the best of them, here at all)."""
        said = [query_terms(text) for text in request.texts]
        names = list(dict.fromkeys(term for terms in said for term in terms))
        impact = np.zeros((len(names), len(self.items)), dtype=np.float32)
        for line, term in enumerate(names):
            if term in self._words:
                impact[line, self._words[term][0]] = self._words[term][1]
        impact = impact[:, rows]
        wanted = [wanted_action(text) for text in request.texts]
        titles = [str(self.titles[place]) for place in self.title_of[rows]]
        telling = telling_words(names, impact > 0, titles)
        named = np.array(
            [
                [
                    names_server(frozenset(terms), title) or not telling.get(title, frozenset()).isdisjoint(terms)
                    for title in self.titles
                ]
                for terms in said
            ]
        )
        return Evidence(
            cosine=None if by_words else request.vectors @ self.vectors[rows].T,
            impact=impact,
            frequency=(impact > 0).sum(axis=1),
            visible=len(rows),
            intent_terms=np.array([[term in terms for term in names] for terms in said], dtype=np.bool_),
            intent_action=np.array(wanted, dtype=np.int64),
            other_action=np.array([other_action(action) for action in wanted], dtype=np.int64),
            several_needs=len(request.texts) > 1,
            actions=self.actions[rows],
            server=named[:, self.title_of[rows]],
            exact=np.zeros(len(rows), dtype=np.bool_),
        )


def requests(name: str, places: dict[str, int], texts: Texts, kind: str = "") -> list[Request]:
    """Return the requests of a set, cut into their needs; with `kind`, those of its requests that nothing fits."""
    unanswerable = [row for row in rows(bench() / name / "nothing_fits.jsonl") if row["kind"] == kind] if kind else []
    queries = unanswerable or read_queries(name)

    def tools(query: dict[str, Any], field: str) -> tuple[int, ...]:
        return tuple(places[one] for one in dict.fromkeys(query.get(field) or ()) if one in places)

    return [
        replace(request, right=right, also=tools(query, "also"))
        for request, query in zip(embed([query["query"] for query in queries], texts), queries, strict=True)
        if (right := tools(query, "gold")) or kind
    ]


def embed(queries: Sequence[str], texts: Texts) -> list[Request]:
    """Cut requests into their needs, and embed these."""
    needs = [(query, *split_clauses(query)) for query in queries]
    vectors = texts.queries([text for parts in needs for text in parts])
    ends = np.cumsum([len(parts) for parts in needs])
    return [Request(parts, vectors[end - len(parts) : end]) for parts, end in zip(needs, ends, strict=True)]


def trial(
    name: str, kind: str, catalogue: Catalogue, request: Request, rows: np.ndarray, *, by_words: bool = False
) -> Trial:
    """Fuse, and keep what calibration may look at."""
    evidence = catalogue.evidence(request, rows, by_words=by_words)
    fused = fuse(evidence)
    order = np.argsort(-fused.strength, kind="stable")[:DEPTH]
    right = (
        np.isin(rows[order], (*request.right, *request.also))
        if kind.startswith("fits")
        else np.zeros(len(order), dtype=np.bool_)
    )
    return Trial(name, kind, facts_of(evidence, fused), fused.strength[order] - fused.strength[order[0]], right)


def entry_of(tool: dict[str, Any]) -> Entry:
    """Return what the product publishes of a tool."""
    item = item_of(tool)
    return enrich_tool(
        Tool(
            key=tool["id"],
            id=tool["id"],
            server=item.server or LOCAL,
            server_title=item.server,
            name=item.name,
            description=item.description,
            input_schema=item.schema,
            category=tool.get("category") or "",
            tags=tuple(tool.get("tags") or ()),
        )
    )


def tools_of(name: str, texts: Texts) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return the tools of a set and their vectors."""
    tools = read_tools(name)
    return tools, texts.documents([entry_of(tool).document for tool in tools])


def among(name: str, texts: Texts, count: int | None) -> Catalogue:
    """Return a set's tools among others of the large catalogue: no equal id, no equal text."""
    (own, vectors), (more, others) = tools_of(name, texts), tools_of("mcp_catalogue", texts)
    chosen = strangers(name, count)
    added = [{**more[row], "id": f"other::{row}"} for row in chosen]
    return Catalogue([*own, *added], np.concatenate([vectors, others[chosen]]))


def make_trials(texts: Texts, *, by_words: bool = False) -> Iterator[Trial]:
    """Give all trials, the same ones every time."""
    random = np.random.default_rng(0)
    sets = (*DEVELOPMENT, PEOPLE)
    catalogues = {name: Catalogue(*tools_of(name, texts)) for name in sets}
    asked = {name: requests(name, catalogues[name].places, texts) for name in sets}
    for catalogue in catalogues.values():
        catalogue.judge(texts)
    for name, catalogue in catalogues.items():
        every = np.arange(len(catalogue.items))
        one = partial(trial, name, by_words=by_words)

        for place in random.permutation(len(asked[name]))[:MOST]:
            request = asked[name][place]
            yield one("fits", catalogue, request, every)
            for kind in ("removed", "removed-narrow"):
                yield one(kind, catalogue, request, catalogue.without(request, narrow=kind != "removed"))
        for size in (12, 40, 150):
            for place in random.permutation(len(asked[name]))[:SMALL]:
                request = asked[name][place]
                rest = random.permutation(catalogue.without(request))[:size]
                yield one(f"none-{size}", catalogue, request, np.sort(rest))
                kept = np.union1d(rest[len(request.right) :], request.right)
                yield one(f"fits-{size}", catalogue, request, kept)
        for kind in ("near", "foreign") if name == PEOPLE else ():
            for request in requests(name, catalogue.places, texts, kind):
                yield one(kind, catalogue, request, every)
        for other in DEVELOPMENT if name != PEOPLE else ():
            near = (catalogues[other].gist @ catalogue.gist.T).max(axis=1)
            strange = [ask for ask in asked[other] if near[list(ask.right)].max() < STRANGE] if other != name else []
            for place in random.permutation(len(strange))[:FOREIGN]:
                yield one("foreign", catalogue, strange[place], every)
        for kind, count in (("fits-4000", 4_000),) if name in CROWDED else ():
            large = among(name, texts, count)
            for place in random.permutation(len(asked[name]))[:150]:
                yield one(kind, large, asked[name][place], np.arange(len(large.items)))
    yield from near_others(texts, by_words=by_words)


def near_others(texts: Texts, *, by_words: bool) -> Iterator[Trial]:
    """Give the near misses of `train_people`, each over its server's tools and some of others."""
    random = np.random.default_rng(1)
    tools, vectors = tools_of("mcp_catalogue", texts)
    places: dict[str, list[int]] = {}
    for place, tool in enumerate(tools):
        places.setdefault(tool.get("server") or "", []).append(place)
    near = [row for row in rows(bench() / "train_people" / "near.jsonl") if row["server"] in places]
    near = [near[place] for place in random.permutation(len(near))[:NEAR]]
    own = np.unique(np.concatenate([places[row["server"]] for row in near]))
    catalogue = Catalogue([tools[place] for place in own], vectors[own])
    for row, request in zip(near, embed([row["query"] for row in near], texts), strict=True):
        mine = np.searchsorted(own, places[row["server"]])
        seen = np.union1d(mine, random.permutation(len(own))[:AROUND])
        yield trial("train_people", "near-others", catalogue, request, seen, by_words=by_words)
