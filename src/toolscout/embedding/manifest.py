"""The `manifest.json` of a model folder, which describes the `model.onnx` and `tokenizer.json` beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolscout.errors import EmbedderError

BUILTIN = Path(__file__).parent.parent / "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The facts about a model that are needed before it is loaded."""

    id: str
    dimension: int
    max_tokens: int
    query_max_tokens: int
    query_template: str
    document_template: Mapping[str, str]
    folder: Path

    @classmethod
    def read(cls, folder: str | Path | None = None) -> Manifest:
        """Read the manifest of a model folder, by default of the built-in model."""
        folder = Path(folder) if folder else BUILTIN
        path = folder / "manifest.json"
        try:
            raw = json.loads(path.read_text("utf-8"))
            return cls(
                id=str(raw["id"]),
                dimension=int(raw["dimension"]),
                max_tokens=int(raw["max_tokens"]),
                query_max_tokens=int(raw["query_max_tokens"]),
                query_template=str(raw["query_template"]),
                document_template=dict(raw["document_template"]),
                folder=folder,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderError(
                f"{path} is not a usable model manifest: {error}",
                hint="a model folder contains manifest.json, model.onnx and tokenizer.json: see docs/embedders.md",
            ) from error
