"""Embedders, which turn text into vectors: the built-in model and others, with one interface."""

from __future__ import annotations

from toolscout.errors import SettingError
from toolscout.ports import Embedder
from toolscout.settings import Settings


def open_embedder(settings: Settings) -> Embedder | None:
    """Build the embedder that the settings name. `none` means that searches use words alone."""
    kind, _, name = settings.embedder.partition(":")
    if kind == "none":
        return None
    if kind == "builtin":
        from toolscout.embedding.builtin import BuiltinEmbedder

        return BuiltinEmbedder(folder=name or None, threads=settings.embed_threads)
    if kind == "sentence-transformers" and name:
        from toolscout.embedding.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(name)
    if kind == "openai" and name:
        from toolscout.embedding.openai import OpenAIEmbedder

        return OpenAIEmbedder(
            name,
            url=settings.embedder_url,
            token=settings.embedder_key,
            dimension=settings.embedder_dimension,
            timeout_s=settings.embed_timeout_s,
        )
    raise SettingError(
        f"TOOLSCOUT_EMBEDDER={settings.embedder!r} is not a known embedder",
        hint="use builtin, builtin:FOLDER, sentence-transformers:MODEL, openai:MODEL or none",
    )
