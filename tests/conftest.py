"""What several tests need: the real built-in model, loaded once; the sample, indexed once; the command, in process."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from authorization_server import _authorization_server, authorization_server  # noqa: F401 - fixtures
from browser import browser, browser_page  # noqa: F401 - fixtures
from independent_issuer import independent_issuer  # noqa: F401 - fixture
from postgres_server import database, fragile, fragile_server, postgres  # noqa: F401 - fixtures
from process_guard import (  # noqa: F401 - hooks
    pytest_collection_modifyitems,
    pytest_runtest_call,
    pytest_runtest_setup,
)
from protected_server import _protected_server, protected_server  # noqa: F401 - fixtures
from servers import (  # noqa: F401 - fixtures
    everything_http,
    everything_server,
    everything_sse,
    filesystem_server,
    git_server,
    memory_server,
    time_server,
)
from toolscout import Scout, sample
from toolscout.embedding import builtin
from toolscout.embedding.manifest import Manifest
from toolscout.models import Candidates, Document, Facets
from toolscout.ports import Progress

if TYPE_CHECKING:
    from toolscout.models import FloatArray

# A shell starts background jobs with SIGINT ignored, and child processes inherit that. Some tests interrupt them.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests away from the catalogue and the settings of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TOOLSCOUT_")]:
            patch.delenv(name)
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.setenv("COLUMNS", "200")
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        patch.delenv("FORCE_COLOR", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def weights_loaded_once() -> Iterator[None]:
    """Load the weights of the built-in model once for all embedders of this process."""
    load, bundled = builtin.load_model, Manifest.read()

    @cache
    def load_bundled(threads: int) -> tuple[Any, Any]:
        return load(bundled, threads)

    def load_model(manifest: Manifest, threads: int) -> tuple[Any, Any]:
        return load_bundled(threads) if manifest == bundled else load(manifest, threads)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtin, "load_model", load_model)
        yield


class SharedEmbedder:
    """The built-in model for many scouts: closing one of them does not unload it."""

    def __init__(self) -> None:
        self.inner = builtin.BuiltinEmbedder()
        self.model_id = self.inner.model_id
        self.dimension = self.inner.dimension
        self.documents = 0

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        self.documents += len(documents)
        return await self.inner.embed_documents(documents, progress)

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        return await self.inner.embed_queries(texts)

    async def close(self) -> None:
        """Stay open: the fixture closes the model at the end."""


@pytest.fixture(scope="session")
async def embedder() -> AsyncIterator[SharedEmbedder]:
    """Give the built-in model; `documents` counts what it has embedded."""
    shared = SharedEmbedder()
    yield shared
    await shared.inner.close()


@pytest.fixture
def open_scout(embedder: SharedEmbedder) -> Callable[..., Scout]:
    """Give what opens a scout over rows, in memory unless a store is named."""

    def opened(tools: Any = None, *, store: str = "memory:", **options: Any) -> Scout:
        return Scout.open(tools=tools, store=store, **{"embedder": embedder, **options})

    return opened


@pytest.fixture(scope="session")
def sample_rows() -> list[dict[str, Any]]:
    """Give the rows of the bundled sample."""
    return [json.loads(line) for line in sample.path().read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
async def sample_scout(embedder: SharedEmbedder) -> AsyncIterator[Scout]:
    """Give a scout over the bundled sample; nobody may change what is in it."""
    async with Scout.open(tools=sample.path(), embedder=embedder) as scout:
        yield scout


@pytest.fixture(scope="session")
async def sample_store(embedder: SharedEmbedder, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the address of a SQLite file that holds the bundled sample; nobody may change what is in it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('sample') / 'catalogue.db'}"
    async with Scout.open(tools=sample.path(), store=url, embedder=embedder):
        return url


@pytest.fixture(scope="session")
def make_facets() -> Callable[..., Facets]:
    """Give what builds a tool as the documented rankers see it."""

    def made(name: str = "tool", description: str = "", **fields: Any) -> Facets:
        server = fields.pop("server", "local")
        known: dict[str, Any] = {
            "key": f"{server}__{name}",
            "id": f"{server}__{name}",
            "server": server,
            "server_title": server,
            "name": name,
            "title": "",
            "description": description,
            "category": "",
            "tags": (),
            "keywords": (),
            "related": (),
            "tenant": "local",
            "owner": None,
            "enabled": True,
            "trusted": True,
            "tokens": 0,
        }
        return Facets(**{**known, **fields})

    return made


@pytest.fixture(scope="session")
def make_candidates() -> Callable[..., Candidates]:
    """Give what builds candidates from tools and the cosine of each with the query."""
    import numpy as np

    def made(facets: Sequence[Facets], cosine: Sequence[float]) -> Candidates:
        return Candidates(
            facets=tuple(facets),
            cosine=np.array([cosine], dtype=np.float64),
            terms=(),
            impact=np.zeros((0, len(facets)), dtype=np.float32),
            fields=np.zeros((0, len(facets)), dtype=np.uint8),
            frequency=np.zeros(0, dtype=np.int64),
            visible=len(facets),
            with_vectors=True,
        )

    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Read the output as one JSON value."""
        return json.loads(self.out)


@pytest.fixture
def toolscout(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Give the `toolscout` command, run in this process: arguments in, exit code and output out."""
    from toolscout.cli.app import main

    def ran(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["toolscout", *arguments])
        capsys.readouterr()
        try:
            main()
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        return Ran(code=0 if code is None else code, out=out, err=err)

    return ran
