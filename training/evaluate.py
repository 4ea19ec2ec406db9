"""Stage 3: measure a checkpoint on the development sets, alone (dense) and fused, and fit the fused coefficients.

    TOOLSCOUT_BENCH=../shared/bench python training/evaluate.py --weights build/weights [--fit]

Everything is scored against every tool of a set, as the formula of `toolscout.discovery.fusion` says; the product looks
at the best 50 of each arm only, which moves the mean by less than .001.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from corpus import DEVELOPMENT, document, item_of, read_queries, read_tools, strangers
from export_base import find_weights
from toolscout.discovery import fusion
from toolscout.discovery.clauses import split_clauses
from toolscout.indexing.enrich import DESCRIPTION, LABELS, NAME, PARAMETERS, SERVER, parameters
from toolscout.text import names_server, query_terms, terms
from toolscout.verbs import actions, other_action, wanted_action
from train import DOCUMENT_TOKENS, QUERY_TOKENS, Tokens, embed_all, encode_texts, load

WEIGHT = {NAME: 3.0, SERVER: 1.5, DESCRIPTION: 1.0, PARAMETERS: 0.4, LABELS: 0.5}
AVERAGE = {NAME: 3.0, SERVER: 2.0, DESCRIPTION: 18.0, PARAMETERS: 20.0, LABELS: 3.0}
NORM = {NAME: 0.3, SERVER: 0.3, DESCRIPTION: 0.6, PARAMETERS: 0.6, LABELS: 0.3}
FITTED = (
    "STANDING_WORDS",
    "STANDING_COVER",
    "SAME_ACTION",
    "OTHER_ACTION",
    "SAME_SERVER",
    "EVIDENCE_COSINE",
    "EVIDENCE_WORDS",
    "EVIDENCE_COVER",
    "CLAUSE_SHARE",
)
CROWDED, CROWD = ("azure_mcp", "livemcp_step"), 4_000
"""The sets that are fitted among other tools as well, at half weight."""
SHIPPED = {name: float(getattr(fusion, name)) for name in FITTED}
NEUTRAL = dict(zip(FITTED, (0.3, 0.3, 0.05, -0.05, 0.05, 0.3, 0.3, 0.1, 0.6), strict=True))


@dataclass
class Bench:
    """One set on a device: everything but the vectors."""

    name: str
    documents: Tokens
    intents: Tokens
    owner: torch.Tensor
    """For each intent, its query."""
    whole: torch.Tensor
    """For each query, the place of its whole request among the intents."""
    words: torch.Tensor
    cover: torch.Tensor
    action: torch.Tensor
    """[intents, tools]: 1 the same, -1 another, 0 unknown."""
    server: torch.Tensor
    """[intents, tools]: whether the intent names the tool's server."""
    gold: torch.Tensor
    """[queries, tools]."""
    wanted: torch.Tensor
    """For each query, how many tools are right."""
    overlap: torch.Tensor
    """For each query, the share of its words' rarity that the best right tool holds."""
    weight: float = 1.0
    """What it counts in fitting."""


def fields(tool: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Give the texts of a tool's fields."""
    item = item_of(tool)
    yield NAME, item.name
    yield SERVER, item.server
    yield DESCRIPTION, item.description
    yield PARAMETERS, " ".join(f"{name} {said}" for name, said in parameters(item.schema))
    yield LABELS, " ".join([tool.get("category") or "", *(tool.get("tags") or ())])


def impacts(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return what each word of each tool weighs, as the product counts it."""
    out = []
    for tool in tools:
        weights: dict[str, float] = {}
        for name, text in fields(tool):
            counts = Counter(terms(text))
            norm = 1 - NORM[name] + NORM[name] * sum(counts.values()) / AVERAGE[name]
            for term, count in counts.items():
                weights[term] = weights.get(term, 0.0) + WEIGHT[name] * count / norm
        out.append({term: weight / (1.2 + weight) for term, weight in weights.items()})
    return out


def make_bench(
    name: str,
    tokenizer: Tokenizer,
    device: torch.device,
    *,
    tools: list[dict[str, Any]] | None = None,
    queries: list[dict[str, Any]] | None = None,
) -> Bench:
    """Read a set (or a set among distractors) and compute its word evidence."""
    tools = read_tools(name) if tools is None else tools
    queries = read_queries(name) if queries is None else queries
    texts, owner, whole = [], [], []
    for place, query in enumerate(queries):
        whole.append(len(texts))
        parts = (query["query"], *split_clauses(query["query"]))
        texts.extend(parts)
        owner.extend([place] * len(parts))
    held = impacts(tools)
    said = [query_terms(text) for text in texts]
    vocabulary = {term: row for row, term in enumerate(dict.fromkeys(term for row in said for term in row))}
    impact = torch.zeros((len(vocabulary), len(tools)))
    for place, row in enumerate(held):
        for term, value in row.items():
            if term in vocabulary:
                impact[vocabulary[term], place] = value
    frequency = (impact > 0).sum(1).numpy()
    rarity = torch.from_numpy(fusion.rarity(frequency, len(tools)))
    weight = torch.zeros((len(texts), len(vocabulary)))
    for place, row in enumerate(said):
        weight[place, [vocabulary[term] for term in row]] = 1.0
    weight = (weight * rarity).to(device)
    impact = impact.to(device)
    words = weight @ impact
    cover = (weight @ (impact > 0).float()) / weight.sum(1, keepdim=True).clamp(min=1e-6)
    does = torch.tensor([actions(tool["name"]) for tool in tools], device=device)
    asks = torch.tensor([wanted_action(text) for text in texts], device=device)
    others = torch.tensor([other_action(int(action)) for action in asks], device=device)
    same, other = (asks[:, None] & does[None]) > 0, (others[:, None] & does[None]) > 0
    action = torch.where(same, 1, torch.where(other, -1, 0)).to(torch.int8)
    titles: dict[str, int] = {}
    held_by = torch.tensor([titles.setdefault(item_of(tool).server, len(titles)) for tool in tools], device=device)
    named = torch.tensor([[names_server(frozenset(row), title) for title in titles] for row in said], device=device)
    places = {tool["id"]: place for place, tool in enumerate(tools)}
    gold = torch.zeros((len(queries), len(tools)), dtype=torch.bool, device=device)
    for place, query in enumerate(queries):
        gold[place, [places[name] for name in query["gold"] if name in places]] = True
    first = torch.tensor(whole, device=device)
    documents = [document(item_of(tool)).text() for tool in tools]
    return Bench(
        name=name,
        documents=Tokens(encode_texts(tokenizer, documents, DOCUMENT_TOKENS), device),
        intents=Tokens(encode_texts(tokenizer, texts, QUERY_TOKENS), device),
        owner=torch.tensor(owner, device=device),
        whole=first,
        words=words,
        cover=cover,
        action=action,
        server=named[:, held_by],
        gold=gold,
        wanted=torch.tensor([len(set(query["gold"])) for query in queries], device=device),
        overlap=cover[first].masked_fill(~gold, -1.0).amax(1),
    )


def gain(scores: torch.Tensor, bench: Bench, depth: int = 10) -> torch.Tensor:
    """Return nDCG@10 of each query."""
    order = scores.topk(min(depth, scores.shape[1])).indices
    hits = bench.gold.gather(1, order).float()
    discount = 1 / torch.log2(torch.arange(depth, device=scores.device).float() + 2)
    ideal = discount.cumsum(0)[bench.wanted.clamp(max=depth) - 1]
    return (hits * discount[: hits.shape[1]]).sum(1) / ideal


def recall(scores: torch.Tensor, bench: Bench, depth: int) -> float:
    """Return the mean share of right tools among the first."""
    hits = bench.gold.gather(1, scores.topk(min(depth, scores.shape[1])).indices).sum(1)
    return float((hits / bench.wanted).mean())


def cosines(model: torch.nn.Module, bench: Bench) -> torch.Tensor:
    """Return [intents, tools]."""
    documents = embed_all(model, bench.documents, np.arange(len(bench.documents.lengths)), exact=True)
    intents = embed_all(model, bench.intents, np.arange(len(bench.intents.lengths)), exact=True)
    return intents @ documents.T


def fused(bench: Bench, cosine: torch.Tensor, constants: Mapping[str, float], gone: torch.Tensor | None = None) -> Any:
    """Return the strength of every tool for every query, as `fuse` computes it; `gone` hides tools, by query."""
    absent = None if gone is None else gone[bench.owner]
    words, cover = bench.words, bench.cover
    if absent is not None:
        cosine, words, cover = (part.masked_fill(absent, 0.0) for part in (cosine, words, cover))
    act = torch.where(bench.action > 0, constants["SAME_ACTION"], 0.0)
    act = torch.where(bench.action < 0, constants["OTHER_ACTION"], act)
    fading = (cover.amax(1, keepdim=True) / 0.5).clamp(max=1.0)
    standing = (
        cosine / cosine.amax(1, keepdim=True).clamp(min=0.1)
        + constants["STANDING_WORDS"] * fading * words / words.amax(1, keepdim=True).clamp(min=1e-6)
        + constants["STANDING_COVER"] * cover
        + act
        + constants["SAME_SERVER"] * bench.server
    )
    if absent is not None:
        standing = standing.masked_fill(absent, -9.0)
    standing = standing - standing.amax(1, keepdim=True)
    each = (
        standing
        + constants["EVIDENCE_COSINE"] * cosine
        + constants["EVIDENCE_WORDS"] * words
        + constants["EVIDENCE_COVER"] * cover
    )
    whole = each[bench.whole]
    clause = torch.ones(len(each), dtype=torch.bool, device=each.device)
    clause[bench.whole] = False
    if not bool(clause.any()):
        return whole
    index = bench.owner[clause][:, None].expand(-1, each.shape[1])
    best = torch.full_like(whole, -1e9).scatter_reduce(0, index, each[clause], "amax")
    share = torch.where(best[:, :1] > -1e8, constants["CLAUSE_SHARE"], 0.0)
    return torch.where(share > 0, (1 - share) * whole + share * best, whole)


def fit(
    benches: Sequence[Bench], vectors: Sequence[torch.Tensor], start: Mapping[str, float], step: float = 0.0002
) -> dict[str, float]:
    """Coordinate search for the constants of the order."""

    def mean(constants: Mapping[str, float]) -> float:
        each = [b.weight * gain(fused(b, v, constants), b).mean() for b, v in zip(benches, vectors, strict=True)]
        return float(torch.stack(each).sum()) / sum(bench.weight for bench in benches)

    found, best = dict(start), mean(start)
    for _ in range(3):
        before = best
        for name in found:
            for factor in (0.5, 0.7, 0.85, 1.2, 1.4, 2.0):
                value = round(found[name] * factor, 4)
                if name == "CLAUSE_SHARE" and value > 1:
                    continue
                tried = mean({**found, name: value})
                if tried > best + step:
                    best, found = tried, {**found, name: value}
        if best - before < 0.0004:
            break
    return found


def row(label: str, values: Sequence[float]) -> str:
    """Write one line of a table."""
    return f"{label:34s} {' '.join(f'{value:.4f}' for value in values)}  mean {np.mean(values):.4f}"


def report(model: torch.nn.Module, benches: Sequence[Bench], label: str) -> list[torch.Tensor]:
    """Print dense and fused nDCG@10 of a model, and return its cosines."""
    vectors = [cosines(model, bench) for bench in benches]
    pairs = list(zip(benches, vectors, strict=True))
    print(row(f"{label} dense", [float(gain(v[b.whole], b).mean()) for b, v in pairs]))
    print(row(f"{label} fused", [float(gain(fused(b, v, SHIPPED), b).mean()) for b, v in pairs]), flush=True)
    return vectors


def main() -> None:
    """Measure, and fit when asked."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--weights", type=Path, default=None, help="default: the installed base")
    parser.add_argument("--fit", action="store_true", help="fit the constants of the order, and leave each set out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    weights: Path = options.weights or find_weights()
    device = torch.device(options.device)
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    benches = [make_bench(name, tokenizer, device) for name in DEVELOPMENT]
    print(" " * 34, " ".join(name[:6] for name in DEVELOPMENT))
    vectors = report(load(weights, device), benches, weights.name)
    if options.fit:
        around = [make_crowd(name, tokenizer, device) for name in CROWDED]
        vectors += report(load(weights, device), around, f"{weights.name}, {CROWD} more")
        report_fit([*benches, *around], vectors)


def make_crowd(name: str, tokenizer: Tokenizer, device: torch.device) -> Bench:
    """Read a set and put other people's tools around it."""
    more = read_tools("mcp_catalogue")
    added = [{**more[row], "id": f"other::{row}"} for row in strangers(name, CROWD)]
    return replace(make_bench(name, tokenizer, device, tools=[*read_tools(name), *added]), weight=0.5)


def report_fit(benches: Sequence[Bench], vectors: Sequence[torch.Tensor]) -> dict[str, float]:
    """Print constants fitted on all sets, and what is found when each set is left out of the fitting."""
    held = []
    for out, bench in enumerate(benches):
        others = [place for place, other in enumerate(benches) if other.name != bench.name]
        found = fit([benches[place] for place in others], [vectors[place] for place in others], NEUTRAL)
        held.append(float(gain(fused(bench, vectors[out], found), bench).mean()))
    print(row("constants fitted without the set", held))
    best = fit(benches, vectors, SHIPPED)
    values = [float(gain(fused(b, v, best), b).mean()) for b, v in zip(benches, vectors, strict=True)]
    print(row("constants fitted on all", values), best, flush=True)
    return best


if __name__ == "__main__":
    main()
