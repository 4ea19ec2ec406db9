"""Stage 2: let a small language model write requests for the tools, and keep those that find their tool again.

    TOOLSCOUT_BENCH=../shared/bench python training/write_requests.py --model build/llm --out build/written.jsonl.gz

The writer is Qwen2.5-Coder-1.5B-Instruct (Apache-2.0) in a GGUF file; `training/README.md` says where to get it. For
each tool it writes six messages: a command, a request, a question in other words, a situation, a step of a plan, and
keywords. A message is kept when the base, or the embedder of `--judge`, finds its tool among the nearest ten of all
tools; one that equals a request of a development set is dropped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from corpus import DEVELOPMENT, Item, document, plain, pool_items, read_queries
from export_base import find_weights
from toolscout.indexing.enrich import parameters
from train import DOCUMENT_TOKENS, QUERY_TOKENS, Tokens, embed_all, encode_texts, load

AMONG = 10
LONGEST, WORDS = 420, range(2, 71)
_SYSTEM = "You write what people say to an AI assistant."
_ASK = """Write six messages of people who need exactly this tool; invent realistic details, and do not name the tool.
1. a short command, 3 to 7 words
2. a request in one sentence
3. a question in everyday words that differ from the description
4. a longer message: first the situation, then the need
5. a step of a plan: a verb, an object, no details
6. keywords, 2 to 5 words"""
_SHOWN = """Tool: reserve table (of dinner desk)
What it does: Reserve a table at a restaurant for a number of guests.
Its inputs: restaurant id, date, time, guests"""
_WRITTEN = """1. book a table for four
2. Please get us a place at Luigi's this Friday at 8 pm, there will be six of us.
3. Can you make sure that we have somewhere to sit when we go out for sushi tomorrow night?
4. My parents are visiting next weekend and I want to take them to the new Thai place. We will be five, at seven.
5. make a reservation at the chosen restaurant
6. restaurant booking tonight"""
_MESSAGE = re.compile(r"^\s*([1-6])[.)]\s*(.+)$", re.MULTILINE)


def shown(item: Item) -> str:
    """Show a tool to the writer."""
    said = " ".join(item.description.split())
    said = said if len(said) <= LONGEST else said[:LONGEST].rsplit(" ", 1)[0] + "..."
    inputs = [plain(name) for name, _ in parameters(item.schema)][:8]
    server = f" (of {plain(item.server)})" if item.server else ""
    text = f"Tool: {plain(item.name)}{server}\nWhat it does: {said or '(not described)'}"
    return f"{text}\nIts inputs: {', '.join(inputs)}" if inputs else text


def prompt(item: Item) -> str:
    """Write the conversation that the writer continues."""
    turns = [
        ("system", _SYSTEM),
        ("user", f"{_SHOWN}\n\n{_ASK}"),
        ("assistant", _WRITTEN),
        ("user", f"{shown(item)}\n\n{_ASK}"),
    ]
    return "".join(f"<|im_start|>{who}\n{said}<|im_end|>\n" for who, said in turns) + "<|im_start|>assistant\n1."


@torch.no_grad()
def write(folder: Path, items: Sequence[Item], device: torch.device, batch: int) -> Iterator[tuple[int, int, str]]:
    """Give (tool, kind of message, message)."""
    file = next(folder.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.bfloat16).to(device).eval()
    torch.manual_seed(7)
    prompts = [prompt(item) for item in items]
    order = sorted(range(len(items)), key=lambda place: len(prompts[place]))
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        given = tokenizer([prompts[place] for place in some], return_tensors="pt", padding=True).to(device)
        made = model.generate(**given, max_new_tokens=180, do_sample=True, temperature=0.8, top_p=0.95, top_k=0)
        for place, ids in zip(some, made[:, given["input_ids"].shape[1] :], strict=True):
            for kind, message in _MESSAGE.findall("1." + tokenizer.decode(ids, skip_special_tokens=True)):
                said = " ".join(message.split()).strip("\"“”'* ")
                if len(said.split()) in WORDS:
                    yield place, int(kind), said
        print(f"{start + len(some)}/{len(order)} tools", flush=True)


def places(
    weights: Path, items: Sequence[Item], asked: Sequence[tuple[int, int, str]], device: torch.device
) -> np.ndarray:
    """Return for each message how many tools of other texts a model finds nearer than the one it was written for."""
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    model = load(weights, device)
    texts = [document(item).text() for item in items]
    tools = embed_all(model, Tokens(encode_texts(tokenizer, texts, DOCUMENT_TOKENS), device), np.arange(len(items)))
    queries = Tokens(encode_texts(tokenizer, [message for *_, message in asked], QUERY_TOKENS), device)
    wanted = embed_all(model, queries, np.arange(len(asked)))
    numbers: dict[str, int] = {}
    same = torch.tensor([numbers.setdefault(item.same, len(numbers)) for item in items], device=device)
    own = torch.tensor([place for place, *_ in asked], device=device)
    found = []
    for start in range(0, len(asked), 4_096):
        near, right = wanted[start : start + 4_096] @ tools.T, own[start : start + 4_096]
        nearer = (near > near.gather(1, right[:, None])) & (same[None] != same[right][:, None])
        found.append(nearer.sum(1).cpu().numpy())
    return np.concatenate(found)


def main() -> None:
    """Write, filter, save."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="a folder with the GGUF file of the writer")
    parser.add_argument("--judge", type=Path, default=None, help="a second embedder that may find the tool")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=1_024)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device, items = torch.device(options.device), pool_items()
    used = {" ".join(query["query"].lower().split()) for name in DEVELOPMENT for query in read_queries(name)}
    asked = [
        made
        for made in write(options.model, items, device, options.batch)
        if " ".join(made[2].lower().split()) not in used
    ]
    judges = [find_weights(), *([options.judge] if options.judge else [])]
    best = np.min([places(judge, items, asked, device) for judge in judges], axis=0)
    with gzip.open(options.out, "wt", encoding="utf-8") as lines:
        for (place, style, query), rank in zip(asked, best.tolist(), strict=True):
            if rank < AMONG:
                pair = {"query": query, "tools": [place], "kind": "written", "pool": items[place].pool, "hide": ""}
                lines.write(json.dumps({**pair, "style": style}) + "\n")
    print(f"{options.out}: {int((best < AMONG).sum())} of {len(asked)} messages find their tool")


if __name__ == "__main__":
    main()
