"""The `manifest.json` of a model folder, which describes the `model.onnx` and `tokenizer.json` beside it.

`python -m toolscout.embedding.manifest [FOLDER]` writes the digests of both files into the manifest. It is needed
after either of them was replaced.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolscout.errors import EmbedderError

BUILTIN = Path(__file__).parent.parent / "model"
FILES = ("model.onnx", "tokenizer.json")


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
    sha256: Mapping[str, str] = field(default_factory=dict)
    """The digest of each file. The built-in model must have them, a folder of the user's own may."""

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
                sha256={str(name): str(value) for name, value in dict(raw.get("sha256") or {}).items()},
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderError(
                f"{path} is not a usable model manifest: {error}",
                hint="a model folder contains manifest.json, model.onnx and tokenizer.json: see docs/embedders.md",
            ) from error

    def verify(self) -> None:
        """Compare the files with their digests. Raise EmbedderError when one is another file than the manifest's."""
        for name in FILES:
            expected = self.sha256.get(name)
            if expected is None and self.folder != BUILTIN:
                continue
            if expected != file_digest(self.folder / name):
                reason = (
                    "is damaged or was replaced: manifest.json has another SHA-256"
                    if expected
                    else "has no digest in manifest.json"
                )
                raise EmbedderError(
                    f"the model in {self.folder} cannot be loaded: {name} {reason}",
                    hint="reinstall toolscout; after a deliberate change of the model, run "
                    f"`python -m toolscout.embedding.manifest {self.folder}`",
                )


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_digests(folder: Path = BUILTIN) -> None:
    """Write the digests of a model's files into its manifest. Its other fields stay."""
    path = folder / "manifest.json"
    values = json.loads(path.read_text("utf-8"))
    values["sha256"] = {name: file_digest(folder / name) for name in FILES}
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    write_digests(*map(Path, sys.argv[1:2]))
