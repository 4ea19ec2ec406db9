"""Tasks done one turn after the other: the model writes, its call is answered, until a call reaches a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.agent.arms import Arm
from benchmarks.agent.pools import Pool
from benchmarks.agent.tasks import Task, arguments_are_right

TURNS = 6
ReadCall = Callable[[str], tuple[str, Mapping[str, Any]] | None]
SYSTEM = "You are an assistant with tools. Do what the user asks with a call of a tool. Do not ask back."


class Writer(Protocol):
    """A language model that writes turns."""

    def encode(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Write a conversation as the model reads it."""

    def write(self, prompts: Sequence[list[int]]) -> list[Any]:
        """Write the next turn of each."""


@dataclass
class Episode:
    """One task in one arm, as far as it has come."""

    key: str
    task: Task
    tools: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    turns: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    reached: tuple[str, Mapping[str, Any]] | None = None
    ended: str = ""
    """Why it ended: `called`, `no call` or `too long`; empty while it goes on, or if it used up its turns."""
    texts: list[str] = field(default_factory=list)

    def outcome(self, pool: Pool) -> dict[str, Any]:
        """Return what is reported of it."""
        right_tool = self.reached is not None and self.reached[0] == self.key
        schema = pool.rows[self.key]["input_schema"]
        right = right_tool and arguments_are_right(self.task, (self.reached or ("", {}))[1], schema)
        return {
            "task": self.task.id,
            "right_tool": right_tool,
            "right": right,
            "ended": self.ended or "turns",
            "turns": self.turns,
            "read_tokens": self.read_tokens,
            "written_tokens": self.written_tokens,
            "reached": self.reached,
            "texts": self.texts,
        }


async def play(
    places: Sequence[tuple[Arm, Pool]], model: Writer, context_tokens: int, read_call: ReadCall
) -> list[dict[str, Any]]:
    """Do every task of all pools. All tasks take a turn together, so that the model reads large batches."""
    episodes = [(arm, pool, await _begin(arm, key, task)) for arm, pool in places for key, task in pool.tasks.items()]
    for _ in range(TURNS):
        going = [(arm, episode) for arm, _, episode in episodes if not episode.ended]
        prompts = [_prompt(model, episode, context_tokens) for _, episode in going]
        ready = [(place, prompt) for place, prompt in zip(going, prompts, strict=True) if prompt]
        turns = model.write([prompt for _, prompt in ready])
        for ((arm, episode), _), turn in zip(ready, turns, strict=True):
            episode.turns += 1
            episode.read_tokens += turn.read_tokens
            episode.written_tokens += turn.written_tokens
            episode.texts.append(turn.text)
            await _answer(episode, arm, read_call(turn.text))
    return [episode.outcome(pool) for _, pool, episode in episodes]


async def _begin(arm: Arm, key: str, task: Task) -> Episode:
    system = "\n\n".join(part for part in (SYSTEM, arm.instructions) if part)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": task.request}]
    return Episode(key, task, await arm.definitions(key), messages)


def _prompt(model: Writer, episode: Episode, context_tokens: int) -> list[int]:
    """Encode a conversation. Of more tools than fit, the last are left out, as hosts with a limit do."""
    prompt = model.encode(episode.messages, episode.tools)
    while len(prompt) > context_tokens and len(episode.tools) > 10:
        share = context_tokens / len(prompt)
        episode.tools = episode.tools[: min(int(len(episode.tools) * share * 0.98), len(episode.tools) - 1)]
        prompt = model.encode(episode.messages, episode.tools)
    if len(prompt) > context_tokens:
        episode.ended = "too long"
        return []
    return prompt


async def _answer(episode: Episode, arm: Arm, call: tuple[str, Mapping[str, Any]] | None) -> None:
    if call is None:
        episode.ended = "no call"
        return
    name, arguments = call
    reply = await arm.call(name, arguments)
    if reply.reached:
        episode.reached, episode.ended = reply.reached, "called"
        return
    episode.texts.append(reply.text[:2_000])
    made = {"type": "function", "function": {"name": name, "arguments": json.loads(json.dumps(arguments))}}
    episode.messages += [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "name": name, "content": reply.text},
    ]
