"""A model is a folder. It can be replaced, and a missing file is a clear error."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolscout import DimensionError, EmbedderError, SettingError, Settings
from toolscout.embedding import open_embedder
from toolscout.embedding.builtin import BuiltinEmbedder
from toolscout.embedding.manifest import BUILTIN, Manifest
from toolscout.models import Document

DOCUMENT = Document(name="send mail", server="post", description="Send a letter", parameters="to, body")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the built-in model's folder."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "model.onnx").symlink_to(BUILTIN / "model.onnx")
    for name in ("tokenizer.json", "manifest.json"):
        shutil.copy(BUILTIN / name, made / name)
    return made


def amend(folder: Path, **fields: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **fields}), "utf-8")


async def test_another_folder_is_another_model(folder: Path, embedder: Any) -> None:
    amend(folder, id="my-model-2", query_template="tool for: {text}", document_template={"description": "{}"})
    swapped = open_embedder(Settings(embedder=f"builtin:{folder}"))
    assert isinstance(swapped, BuiltinEmbedder)
    assert (swapped.model_id, swapped.dimension) == ("my-model-2", 384)
    expected = await embedder.embed_queries(["tool for: braces {stay} as they are", "Send a letter"])
    assert np.array_equal(await swapped.embed_queries(["braces {stay} as they are"]), expected[:1])
    assert np.array_equal(await swapped.embed_documents([DOCUMENT]), expected[1:])
    await swapped.close()


async def test_the_template_writes_the_parts_that_are_there() -> None:
    assert DOCUMENT.text() == "send mail (post): Send a letter Parameters: to, body"
    bare = Document(name="send", server="", description="", parameters="")
    assert bare.text() == "send"
    assert DOCUMENT.text({"server": "{} | ", "name": "{}"}) == "post | send mail"


async def test_a_manifest_with_a_wrong_dimension_is_an_error(folder: Path) -> None:
    amend(folder, dimension=256)
    model = BuiltinEmbedder(folder=folder)
    with pytest.raises(DimensionError, match="384 numbers instead of 256"):
        await model.embed_queries(["x"])
    await model.close()


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="not a usable model manifest") as caught:
        open_embedder(Settings(embedder=f"builtin:{tmp_path / 'nowhere'}"))
    assert "model.onnx" in caught.value.hint


@pytest.mark.parametrize("text", ["", "not JSON", "[]", "{}", '{"id": "x", "dimension": "many"}'])
def test_a_manifest_that_cannot_be_read_is_a_clear_error(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text, "utf-8")
    with pytest.raises(EmbedderError, match="not a usable model manifest"):
        BuiltinEmbedder(folder=folder)


@pytest.mark.parametrize("part", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "damaged"])
async def test_a_missing_or_damaged_part_is_an_embedder_error(folder: Path, part: str, damage: str) -> None:
    spoil(folder / part, damage)
    model = BuiltinEmbedder(folder=folder)
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        await model.embed_queries(["x"])
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        await model.embed_documents([DOCUMENT])
    await model.close()


@pytest.mark.parametrize("part", ["model.onnx", "tokenizer.json"])
async def test_a_file_with_another_digest_than_the_manifest_says_is_not_loaded(folder: Path, part: str) -> None:
    amend(folder, sha256={part: "0" * 64})
    model = BuiltinEmbedder(folder=folder)
    with pytest.raises(EmbedderError, match=f"{part} is damaged or was replaced") as caught:
        await model.embed_queries(["x"])
    await model.close()
    assert f"python -m toolscout.embedding.manifest {folder}" in caught.value.hint


def test_the_builtin_model_must_have_digests_and_another_folder_may_have_them(folder: Path) -> None:
    amend(folder, sha256=None)
    Manifest.read(folder).verify()
    with pytest.raises(EmbedderError, match="has no digest"):
        replace(Manifest.read(), sha256={}).verify()
    Manifest.read().verify()


@pytest.mark.process
def test_one_command_writes_the_digests_of_a_folder(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    subprocess.run([sys.executable, "-m", "toolscout.embedding.manifest", str(folder)], check=True, timeout=60)
    Manifest.read(folder).verify()
    assert Manifest.read(folder).sha256.keys() == {"model.onnx", "tokenizer.json"}


def spoil(path: Path, damage: str) -> None:
    path.unlink()
    if damage == "damaged":
        path.write_bytes(b"\x00\x01 this is no model")


@pytest.mark.parametrize("name", ["", "openai", "openai:", "sentence-transformers:", "magic"])
def test_a_setting_that_names_no_embedder_is_an_error_that_names_them(name: str) -> None:
    with pytest.raises(SettingError, match="is not a known embedder") as caught:
        open_embedder(Settings(embedder=name))
    assert "builtin:FOLDER" in caught.value.hint


def test_none_means_no_embedder() -> None:
    assert open_embedder(Settings(embedder="none")) is None
