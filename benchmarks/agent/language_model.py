"""A small language model that calls tools: Qwen2.5-Coder-1.5B-Instruct (Apache-2.0) from a GGUF file, on a GPU.

Needs torch, transformers and gguf, which are no dependencies of Toolscout. docs/benchmarks.md says where the file is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.agent.network import Network

CONTEXT_TOKENS = 32_000
MAX_NEW_TOKENS = 256
_BATCH_TOKENS = 1_000_000
"""The most tokens of a batch: 29 GB of keys and values."""
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|$)", re.DOTALL)


@dataclass(frozen=True)
class Turn:
    """What the model wrote, and how much it read and wrote for it."""

    text: str
    read_tokens: int
    written_tokens: int


class LanguageModel:
    """Writes the next turn of many conversations at once, always the likeliest word."""

    def __init__(self, file: Path, device: str = "cuda") -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.bfloat16)
        self.network = Network(model, device)
        self.start, self.end = self.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])

    def encode(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Write a conversation as the model was trained to read it."""
        text = self.tokenizer.apply_chat_template(
            list(messages), tools=list(tools), add_generation_prompt=True, tokenize=False
        )
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def write(self, prompts: Sequence[list[int]]) -> list[Turn]:
        """Write a turn for each prompt, those of like length together."""
        turns: dict[int, Turn] = {}
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        while order:
            size = max(_BATCH_TOKENS // (len(prompts[order[-1]]) + MAX_NEW_TOKENS), 1)
            batch, order = order[-size:], order[:-size]
            turns |= zip(batch, self._write([prompts[index] for index in batch]), strict=True)
        return [turns[index] for index in range(len(prompts))]

    def _write(self, prompts: Sequence[list[int]]) -> list[Turn]:
        """Write a turn for each. What precedes the first message of the user is shared between prompts."""
        users = [prompt.index(self.start, 1) for prompt in prompts]
        parts = [(tuple(prompt[:user]), prompt[user:]) for prompt, user in zip(prompts, users, strict=True)]
        written = self.network.write(parts, MAX_NEW_TOKENS, [self.end, self.tokenizer.eos_token_id])
        texts = self.tokenizer.batch_decode(written, skip_special_tokens=True)
        return [Turn(text, len(a), len(b) + 1) for text, a, b in zip(texts, prompts, written, strict=True)]


def read_call(text: str) -> tuple[str, Mapping[str, Any]] | None:
    """Read the first tool call of a turn: in its tags, or as a bare JSON object, which this model often writes."""
    tagged = _CALL.search(text)
    body = tagged.group(1) if tagged else text
    decoder, start = json.JSONDecoder(strict=False), body.find("{")
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(body, start)
        except ValueError:
            start = body.find("{", start + 1)
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            arguments = value.get("arguments", value.get("parameters"))
            return value["name"], arguments if isinstance(arguments, dict) else {}
        start = body.find("{", start + 1)
    return None
