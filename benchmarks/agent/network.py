"""A Qwen2 network that writes many answers at once, with the keys and values of a shared beginning computed once.

The prompts of an arm begin with the same definitions of tools, which can be thousands of tokens. The general code of
transformers reads them again for every prompt, and copies keys and values for every word that it writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.nn.functional import linear, scaled_dot_product_attention, silu

MOST_POSITIONS = 33_000
_PREFILL_TOKENS = 60_000
"""How many tokens are read at once, at most."""

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Network:
    """The weights of a Qwen2 model, as transformers loads them."""

    def __init__(self, model: Any, device: str) -> None:
        config = model.config
        self.heads, self.shared_heads = config.num_attention_heads, config.num_key_value_heads
        self.size, self.epsilon, self.device = config.hidden_size // self.heads, config.rms_norm_eps, device
        weights = {name: weight.to(device) for name, weight in model.state_dict().items()}
        self.embedding, self.norm = weights["model.embed_tokens.weight"], weights["model.norm.weight"]
        self.output = weights.get("lm_head.weight", self.embedding)
        self.layers = [
            {
                name.removeprefix(start): weight
                for name, weight in weights.items()
                if name.startswith(start := f"model.layers.{number}.")
            }
            for number in range(config.num_hidden_layers)
        ]
        rates = config.rope_parameters["rope_theta"] ** (-torch.arange(0, self.size, 2, device=device) / self.size)
        angles = torch.outer(torch.arange(MOST_POSITIONS, device=device), rates).repeat(1, 2)
        self.cosine, self.sine = angles.cos().to(self.embedding.dtype), angles.sin().to(self.embedding.dtype)
        self._beginning = lru_cache(maxsize=4)(self._read_beginning)

    @torch.inference_mode()
    def write(
        self, prompts: Sequence[tuple[tuple[int, ...], list[int]]], most: int, ends: Sequence[int]
    ) -> list[list[int]]:
        """Continue prompts, each a beginning that others may share and the rest, with up to `most` likeliest tokens."""
        count = len(prompts)
        lengths = torch.tensor([len(beginning) + len(rest) for beginning, rest in prompts], device=self.device)
        shape = (len(self.layers), 2, count, self.shared_heads, int(lengths.max()) + most, self.size)
        cache = torch.zeros(shape, dtype=self.embedding.dtype, device=self.device)
        token = torch.zeros(count, dtype=torch.long, device=self.device)
        groups: dict[tuple[int, ...], list[int]] = {}
        shared = Counter(beginning for beginning, _ in prompts)
        prompts = [item if shared[item[0]] > 1 else ((), [*item[0], *item[1]]) for item in prompts]
        for row, (beginning, _) in enumerate(prompts):
            groups.setdefault(beginning, []).append(row)
        for beginning, rows in groups.items():
            longest = max(len(prompts[row][1]) for row in rows)
            each = max(_PREFILL_TOKENS // max(longest, len(beginning) // 8), 1)
            for start in range(0, len(rows), each):
                some = rows[start : start + each]
                token[some] = self._read(beginning, [prompts[row][1] for row in some], cache, some)
        return [_until_end(row, ends) for row in self._continue(token, lengths, cache, most, ends)]

    def _continue(
        self, token: torch.Tensor, positions: torch.Tensor, cache: torch.Tensor, most: int, ends: Sequence[int]
    ) -> list[list[int]]:
        """Write up to `most` tokens of each row, the first one known. On a GPU, one step is recorded and replayed."""
        written, stop = [token.clone()], torch.tensor(ends, device=self.device)
        ended = torch.isin(token, stop)
        rows = torch.arange(len(token), device=self.device)

        def step() -> None:
            token.copy_(self._next(token, positions, cache, rows))
            positions.add_(1)

        replay = step
        for number in range(most - 1):
            if number % 8 == 0 and bool(ended.all()):
                break
            if number == 1 and token.is_cuda:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    step()
                replay = graph.replay
            replay()
            written.append(token.clone())
            ended |= torch.isin(token, stop)
        return torch.stack(written, dim=1).tolist()

    def _read(
        self, beginning: tuple[int, ...], rests: list[list[int]], cache: torch.Tensor, rows: list[int]
    ) -> torch.Tensor:
        """Read prompts of one beginning into the cache and return the token after each."""
        known, begun = (self._beginning(beginning), len(beginning)) if beginning else (None, 0)
        longest = max(map(len, rests))
        tokens = torch.tensor([rest + [0] * (longest - len(rest)) for rest in rests], device=self.device)
        visible = torch.ones(longest, begun + longest, dtype=torch.bool, device=self.device).tril(diagonal=begun)
        place = torch.tensor(rows, device=self.device)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            if known is not None:
                k = torch.cat([known[layer, 0].expand(len(rests), -1, -1, -1), k], dim=2)
                v = torch.cat([known[layer, 1].expand(len(rests), -1, -1, -1), v], dim=2)
            cache[layer, 0, place, :, : k.shape[2]] = k
            cache[layer, 1, place, :, : v.shape[2]] = v
            if known is None:
                return scaled_dot_product_attention(q, self._repeat(k), self._repeat(v), is_causal=True)
            return scaled_dot_product_attention(q, self._repeat(k), self._repeat(v), attn_mask=visible)

        states = self._forward(tokens, torch.arange(begun, begun + longest, device=self.device)[None], attend)
        last = torch.tensor([len(rest) - 1 for rest in rests], device=self.device)
        return self._likeliest(states[torch.arange(len(rests), device=self.device), last])

    def _read_beginning(self, beginning: tuple[int, ...]) -> torch.Tensor:
        """Return keys and values of a beginning, for every layer."""
        shape = (len(self.layers), 2, 1, self.shared_heads, len(beginning), self.size)
        kept = torch.empty(shape, dtype=self.embedding.dtype, device=self.device)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            kept[layer, 0], kept[layer, 1] = k, v
            return scaled_dot_product_attention(q, self._repeat(k), self._repeat(v), is_causal=True)

        tokens = torch.tensor([beginning], device=self.device)
        self._forward(tokens, torch.arange(len(beginning), device=self.device)[None], attend)
        return kept

    def _next(
        self, token: torch.Tensor, positions: torch.Tensor, cache: torch.Tensor, rows: torch.Tensor
    ) -> torch.Tensor:
        """Read one token of each row and return the next. Query heads that share keys are read as one query more."""
        hidden = torch.arange(cache.shape[4], device=self.device)[None] > positions[:, None]

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            cache[layer, 0, rows, :, positions] = k[:, :, 0]
            cache[layer, 1, rows, :, positions] = v[:, :, 0]
            together = q.reshape(len(rows), self.shared_heads, -1, self.size) * self.size**-0.5
            scores = (together @ cache[layer, 0].transpose(-1, -2)).float()
            shares = scores.masked_fill_(hidden[:, None, None], float("-inf")).softmax(dim=-1).to(q.dtype)
            return (shares @ cache[layer, 1]).reshape(q.shape)

        return self._likeliest(self._forward(token[:, None], positions[:, None], attend)[:, -1])

    def _forward(self, tokens: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        states = self.embedding[tokens]
        cosine, sine = self.cosine[positions][:, None], self.sine[positions][:, None]
        for number, layer in enumerate(self.layers):
            normed = self._normalize(states, layer["input_layernorm.weight"])
            q, k, v = (self._project(normed, layer, name) for name in ("q_proj", "k_proj", "v_proj"))
            q, k = (item * cosine + _rotate(item) * sine for item in (q, k))
            mixed = attend(number, q, k, v).transpose(1, 2).flatten(2)
            states = states + linear(mixed, layer["self_attn.o_proj.weight"])
            normed = self._normalize(states, layer["post_attention_layernorm.weight"])
            wide = silu(linear(normed, layer["mlp.gate_proj.weight"])) * linear(normed, layer["mlp.up_proj.weight"])
            states = states + linear(wide, layer["mlp.down_proj.weight"])
        return states

    def _project(self, states: torch.Tensor, layer: dict[str, torch.Tensor], name: str) -> torch.Tensor:
        made = linear(states, layer[f"self_attn.{name}.weight"], layer[f"self_attn.{name}.bias"])
        return made.unflatten(-1, (-1, self.size)).transpose(1, 2)

    def _normalize(self, states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        exact = states.float()
        return weight * (exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.epsilon)).to(states.dtype)

    def _likeliest(self, states: torch.Tensor) -> torch.Tensor:
        return linear(self._normalize(states, self.norm), self.output).argmax(dim=-1)

    def _repeat(self, shared: torch.Tensor) -> torch.Tensor:
        return shared.repeat_interleave(self.heads // self.shared_heads, dim=1)


def _rotate(item: torch.Tensor) -> torch.Tensor:
    first, second = item.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def _until_end(tokens: list[int], ends: Sequence[int]) -> list[int]:
    return next((tokens[:place] for place, token in enumerate(tokens) if token in ends), tokens)
