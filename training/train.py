"""Stage 2: fine-tune the base model on the pairs, average the runs, and average the result with the base.

    TOOLSCOUT_BENCH=../shared/bench python training/train.py --pairs build/*.jsonl.gz --out build/weights

Contrastive learning (InfoNCE): a request against the documents of its batch. Half of the batches are filled server by
server, so that sibling tools are the negatives; each request also brings one near tool as a hard negative. What may be
right as well is no negative: the request's own tools, equal texts, near-equal tools of other servers, and tools of
other servers that the base model finds clearly nearer to the request than the right one. ``--fold SET`` leaves a
development set's tools, and the training queries that go with them, out of everything.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from corpus import Item, document, kept_out, pool_items
from export_base import find_weights
from phrasing import sentences

QUERY_TOKENS, DOCUMENT_TOKENS = 128, 96
HIDE = ("", "name", "first", "rest")
Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a run besides the data."""

    batch: int = 512
    rate: float = 6e-5
    temperature: float = 0.06
    epochs: float = 2.0
    grouped: float = 0.5
    hide: float = 0.5
    hard: float = 1.0
    far: float = 0.8
    guard: float = 0.02
    symmetric: float = 0.0
    doubt: float = 0.5
    """For people's requests, `guard` counts only for tools this near to the right one: they often share no word with
    it, and the base then finds half of the catalogue nearer."""
    shares: dict[str, float] = field(
        default_factory=lambda: {"metatool/labelled": 0.6, "seal/labelled": 2.0, "people": 10.0}
    )
    seed: int = 1


class Tokens:
    """Token rows on a device, padded, with their lengths beside them."""

    def __init__(self, encoded: Sequence[Sequence[int]], device: torch.device) -> None:
        """Pad to the longest."""
        self.lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        table = np.zeros((len(encoded), int(self.lengths.max())), dtype=np.int32)
        for row, ids in enumerate(encoded):
            table[row, : len(ids)] = ids
        self.table = torch.from_numpy(table).to(device)
        self.ends = torch.from_numpy(self.lengths).to(device)

    def take(self, places: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ids and the mask of some rows, as wide as the longest of them."""
        width = int(self.lengths[places].max())
        index = torch.from_numpy(places).to(self.table.device)
        ids = self.table[index, :width].long()
        mask = torch.arange(width, device=ids.device)[None] < self.ends[index][:, None]
        return ids, mask.long()


@dataclass
class Data:
    """The pairs and tools of one run."""

    items: list[Item]
    pairs: list[dict]
    queries: Tokens
    documents: Tokens
    """Four rows a tool, one for each value of `HIDE`."""
    group: np.ndarray
    """For each tool, the number of its text: equal texts, equal numbers."""
    server: np.ndarray


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str], limit: int) -> list[list[int]]:
    """Cut and encode texts; the last token stays."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return [encoded.ids for encoded in tokenizer.encode_batch(list(texts))]


def variants(item: Item) -> list[str]:
    """Write a tool's document whole, and without the part that a request was made from."""
    whole = document(item)
    said = sentences(item.description)
    first = said[0] if said else ""
    rest = item.description.replace(first, "", 1).strip(" .\n") if first else item.description
    texts = [
        whole.text(),
        replace(whole, name="").text(),
        replace(whole, description=rest).text(),
        replace(whole, description=first).text(),
    ]
    return [text if len(text.split()) >= 3 else texts[0] for text in texts]


def read_pairs(path: Path) -> list[dict]:
    """Read the file that `make_pairs` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def prepare(pairs: list[dict], tokenizer: Tokenizer, device: torch.device) -> Data:
    """Tokenise everything once."""
    items = pool_items()
    texts = [text for item in items for text in variants(item)]
    numbers: dict[str, int] = {}
    servers: dict[str, int] = {}
    return Data(
        items=items,
        pairs=pairs,
        queries=Tokens(encode_texts(tokenizer, [pair["query"] for pair in pairs], QUERY_TOKENS), device),
        documents=Tokens(encode_texts(tokenizer, texts, DOCUMENT_TOKENS), device),
        group=np.array([numbers.setdefault(item.same, len(numbers)) for item in items]),
        server=np.array([servers.setdefault(item.server or item.pool, len(servers)) for item in items]),
    )


def load(weights: Path, device: torch.device) -> torch.nn.Module:
    """Load the transformer."""
    return AutoModel.from_pretrained(weights, add_pooling_layer=False, dtype=torch.float32).to(device)


def embed(model: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return unit vectors: the mean of the tokens."""
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    weight = mask.unsqueeze(-1).float()
    return torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9), dim=-1)


def embed_rows(model: torch.nn.Module, tokens: Tokens, places: np.ndarray, parts: int = 4) -> torch.Tensor:
    """Embed the rows of a batch in a few parts of like length, which saves most of the padding."""
    order = np.argsort(tokens.lengths[places], kind="stable")
    found = [embed(model, *tokens.take(places[some])) for some in np.array_split(order, parts) if len(some)]
    return torch.cat(found)[torch.from_numpy(np.argsort(order)).to(tokens.table.device)]


@torch.no_grad()
def embed_all(model: torch.nn.Module, tokens: Tokens, places: np.ndarray, *, exact: bool = False) -> torch.Tensor:
    """Return the vectors of many rows, shortest first inside."""
    model.eval()
    order = np.argsort(tokens.lengths[places], kind="stable")
    out = torch.empty((len(places), 384), device=tokens.table.device)
    for start in range(0, len(order), 1024):
        some = order[start : start + 1024]
        with torch.autocast(tokens.table.device.type, dtype=torch.bfloat16, enabled=not exact):
            out[torch.from_numpy(some).to(out.device)] = embed(model, *tokens.take(places[some])).float()
    return out


def mine(vectors: torch.Tensor, data: Data, allowed: np.ndarray, far: float) -> list[np.ndarray]:
    """Return for each tool the near ones that may serve as negatives: siblings first, then others not too near."""
    device = vectors.device
    server, group = torch.from_numpy(data.server).to(device), torch.from_numpy(data.group).to(device)
    usable = torch.from_numpy(allowed).to(device)
    found = []
    for start in range(0, len(vectors), 2048):
        near = vectors[start : start + 2048] @ vectors.T
        stop = start + len(near)
        sibling = server[start:stop, None] == server[None]
        bad = (group[start:stop, None] == group[None]) | ~usable[None] | (~sibling & (near > far))
        near = near.masked_fill(bad, -1.0)
        own = near.masked_fill(~sibling, -1.0).topk(8)
        others = near.masked_fill(sibling, -1.0).topk(16)
        places = torch.cat([own.indices, others.indices], 1).cpu().numpy()
        fit = torch.cat([own.values > 0.2, others.values > 0.2], 1).cpu().numpy()
        found.extend(row[keep] for row, keep in zip(places, fit, strict=True))
    return found


def batches(data: Data, chosen: np.ndarray, recipe: Recipe, random: Random) -> Iterator[np.ndarray]:
    """Give one epoch: some batches by chance, some server by server."""
    places = chosen.tolist()
    random.shuffle(places)
    cut = int(len(places) * (1 - recipe.grouped))
    loose, kept = places[:cut], places[cut:]
    by_server: dict[int, list[int]] = defaultdict(list)
    for place in kept:
        by_server[int(data.server[data.pairs[place]["tools"][0]])].append(place)
    blocks = [rows[at : at + 64] for rows in by_server.values() for at in range(0, len(rows), 64)]
    random.shuffle(blocks)
    grouped = [place for block in blocks for place in block]
    every = [
        rows[start : start + recipe.batch]
        for rows in (loose, grouped)
        for start in range(0, len(rows) - recipe.batch + 1, recipe.batch)
    ]
    random.shuffle(every)
    for batch in every:
        yield np.array(batch)


def pick(data: Data, allowed: np.ndarray, recipe: Recipe, random: Random) -> np.ndarray:
    """Choose the pairs of one epoch: none of a kept-out tool, each kind as often as its share says."""
    chosen = []
    for place, pair in enumerate(data.pairs):
        if all(allowed[tool] for tool in pair["tools"]):
            kind = f"{pair['pool']}/{pair['kind']}"
            share = recipe.shares.get(kind, recipe.shares.get(pair["kind"], recipe.shares.get(pair["pool"], 1.0)))
            chosen.extend([place] * (int(share) + (random.random() < share % 1)))
    return np.array(chosen)


def train(data: Data, weights: Path, recipe: Recipe, *, fold: str = "", quiet: bool = False) -> Weights:
    """Train one seed, and return its weights."""
    device = data.queries.table.device
    random = Random(recipe.seed)
    torch.manual_seed(recipe.seed)
    model = load(weights, device)
    allowed = ~np.array(kept_out(data.items, fold))
    whole = np.arange(len(data.items)) * len(HIDE)
    base_documents = embed_all(model, data.documents, whole)
    base_queries = embed_all(model, data.queries, np.arange(len(data.pairs))) if recipe.guard else None
    near = mine(base_documents, data, allowed, recipe.far)
    server, group = (torch.from_numpy(part).to(device) for part in (data.server, data.group))
    plan = [
        batch
        for epoch in range(math.ceil(recipe.epochs))
        for batch in batches(data, pick(data, allowed, recipe, random), recipe, random)
    ]
    plan = plan[: int(len(plan) * recipe.epochs / math.ceil(recipe.epochs))]
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=0.01, fused=device.type == "cuda")
    warm = max(1, len(plan) // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(0.0, (len(plan) - step) / (len(plan) - warm)))
    )
    started, total = time.time(), 0.0
    model.train()
    for step, batch in enumerate(plan):
        rows = [data.pairs[place] for place in batch]
        right = np.array([random.choice(row["tools"]) for row in rows])
        form = np.array([HIDE.index(row["hide"]) if random.random() < recipe.hide else 0 for row in rows])
        extra = [place for place in range(len(rows)) if len(near[right[place]]) and random.random() < recipe.hard]
        wrong = np.array([random.choice(near[right[place]]) for place in extra], dtype=np.int64)
        column = np.concatenate([right, wrong])
        shown = np.concatenate([form, form[extra]]) if extra else form
        mask = _may_be_right(rows, right, column, server, group, base_documents, recipe.far)
        if base_queries is not None:
            asked = base_queries[torch.from_numpy(batch).to(device)]
            there = torch.from_numpy(column).to(device)
            score = asked @ base_documents[there].T
            own = score.diagonal()[:, None]
            answers = torch.from_numpy(right).to(device)
            foreign = server[answers][:, None] != server[there][None]
            people = torch.tensor([row["pool"] == "people" for row in rows], device=device)[:, None]
            near_right = base_documents[answers] @ base_documents[there].T > recipe.doubt
            mask |= foreign & (score > own + recipe.guard) & (~people | near_right)
        mask[torch.arange(len(rows)), torch.arange(len(rows))] = False
        with torch.autocast(device.type, dtype=torch.bfloat16):
            query = embed_rows(model, data.queries, batch)
            text = embed_rows(model, data.documents, column * len(HIDE) + shown)
        logits = (query @ text.T) / recipe.temperature
        logits = logits.masked_fill(mask, -1e4)
        target = torch.arange(len(rows), device=device)
        loss = torch.nn.functional.cross_entropy(logits, target)
        if recipe.symmetric:
            loss = loss + recipe.symmetric * torch.nn.functional.cross_entropy(logits[:, : len(rows)].T, target)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if not quiet and step % 100 == 0:
            total = float(loss.detach())
            print(f"  step {step}/{len(plan)} loss {total:.3f} {time.time() - started:.0f} s", flush=True)
    return {name: value.detach().float().cpu() for name, value in model.state_dict().items()}


def _may_be_right(
    rows: list[dict],
    right: np.ndarray,
    column: np.ndarray,
    server: torch.Tensor,
    group: torch.Tensor,
    vectors: torch.Tensor,
    far: float,
) -> torch.Tensor:
    """Mark the documents of a batch that must not count against a request."""
    device = vectors.device
    own, there = torch.from_numpy(right).to(device), torch.from_numpy(column).to(device)
    most = max(len(row["tools"]) for row in rows)
    gold = np.array([[*row["tools"], *[row["tools"][0]] * (most - len(row["tools"]))] for row in rows])
    mask = (group[torch.from_numpy(gold).to(device)][:, None] == group[there][None, :, None]).any(-1)
    foreign = server[own][:, None] != server[there][None]
    return mask | (foreign & (vectors[own] @ vectors[there].T > far))


def average(several: Sequence[Weights], shares: Sequence[float]) -> Weights:
    """Return the weighted mean of checkpoints."""
    return {
        name: sum((share * part[name] for share, part in zip(shares, several, strict=True)), torch.zeros(()))
        for name in several[0]
        if several[0][name].is_floating_point()
    }


def save(weights: Weights, base: Path, out: Path) -> None:
    """Write a checkpoint folder that `export_base --weights` reads."""
    out.mkdir(parents=True, exist_ok=True)
    model = AutoModel.from_pretrained(base, add_pooling_layer=False, dtype=torch.float32)
    model.load_state_dict(weights, strict=False)
    model.save_pretrained(out)
    shutil.copy(base / "tokenizer.json", out / "tokenizer.json")


def main() -> None:
    """Train the runs, average them, average with the base, write the folder."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=None, help="the base; default: the installed weights package")
    parser.add_argument("--fold", default="", help="a development set whose tools are kept out")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.06, 0.04], help="one run each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base-share", type=float, default=0.2, help="how much of the base the result keeps")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    base: Path = options.weights or find_weights()
    device = torch.device(options.device)
    pairs = [pair for path in options.pairs for pair in read_pairs(path)]
    data = prepare(pairs, Tokenizer.from_file(str(base / "tokenizer.json")), device)
    recipes = [replace(Recipe(), seed=options.seed, temperature=value) for value in options.temperatures]
    runs = [train(data, base, recipe, fold=options.fold) for recipe in recipes]
    start = {name: value.cpu() for name, value in load(base, torch.device("cpu")).state_dict().items()}
    tuned = average(runs, [1 / len(runs)] * len(runs))
    save(average([start, tuned], [options.base_share, 1 - options.base_share]), base, options.out)
    print(f"{options.out}: mean of {len(runs)} runs, {options.base_share:.2f} of the base kept")


if __name__ == "__main__":
    main()
