"""An OpenAI-compatible endpoint, over a real connection to a local server."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from embedders import hash_vector
from endpoint import Endpoint
from toolscout import DimensionError, EmbedderError, Settings
from toolscout.embedding import open_embedder
from toolscout.embedding.openai import OpenAIEmbedder
from toolscout.models import Document

KEY = "sk-canary-7f3a"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    served = Endpoint()
    yield served
    served.stop()


@pytest.fixture
async def remote(endpoint: Endpoint) -> AsyncIterator[OpenAIEmbedder]:
    made = OpenAIEmbedder("text-small", url=endpoint.url, token=KEY, timeout_s=30)
    yield made
    await made.close()


async def failure(embedder: OpenAIEmbedder) -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        await embedder.embed_queries(["one", "two"])
    return caught.value


async def test_queries_become_unit_vectors(remote: OpenAIEmbedder, endpoint: Endpoint) -> None:
    vectors = await remote.embed_queries(["send mail", "delete file"])
    assert np.allclose(vectors, [hash_vector("send mail"), hash_vector("delete file")], atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    headers, body = endpoint.seen[0]
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "text-small", "input": ["send mail", "delete file"], "encoding_format": "float"}


async def test_documents_are_sent_as_text_in_parts_of_128(remote: OpenAIEmbedder, endpoint: Endpoint) -> None:
    documents = [Document(name=f"tool {n}", server="s", description="d", parameters="") for n in range(300)]
    output: list[tuple[int, int]] = []
    vectors = await remote.embed_documents(documents, lambda done, of: output.append((done, of)))
    assert [len(body["input"]) for _, body in endpoint.seen] == [128, 128, 44]
    assert endpoint.seen[0][1]["input"][0] == "tool 0 (s): d"
    assert output == [(128, 300), (256, 300), (300, 300)]
    assert np.allclose(vectors[299], hash_vector("tool 299 (s): d"), atol=1e-6)


async def test_no_texts_ask_nothing(remote: OpenAIEmbedder, endpoint: Endpoint) -> None:
    assert len(await remote.embed_queries([])) == 0
    assert endpoint.seen == []


async def test_vectors_in_another_order_are_sorted(remote: OpenAIEmbedder, endpoint: Endpoint) -> None:
    endpoint.manner = "unordered"
    vectors = await remote.embed_queries(["send mail", "delete file"])
    assert np.allclose(vectors[0], hash_vector("send mail"), atol=1e-6)


async def test_a_dimension_is_sent_and_part_of_the_model_id(endpoint: Endpoint) -> None:
    settings = Settings(embedder="openai:small", embedder_url=endpoint.url, embedder_dimension=32)
    made = open_embedder(settings)
    assert made is not None
    assert (made.model_id, made.dimension) == ("openai:small:32", 32)
    assert (await made.embed_queries(["x"])).shape == (1, 32)
    headers, body = endpoint.seen[0]
    assert body["dimensions"] == 32
    assert "Authorization" not in headers
    await made.close()


@pytest.mark.parametrize("manner", ["one too few", "one twice", "of two lengths"])
async def test_vectors_that_do_not_fit_the_texts_are_refused(
    remote: OpenAIEmbedder, endpoint: Endpoint, manner: str
) -> None:
    endpoint.manner = manner
    assert isinstance(await failure(remote), DimensionError)


async def test_vectors_of_another_length_than_requested_are_refused(endpoint: Endpoint) -> None:
    endpoint.manner = "too short"
    made = OpenAIEmbedder("small", url=endpoint.url, token="", dimension=32)
    error = await failure(made)
    assert isinstance(error, DimensionError)
    assert "TOOLSCOUT_EMBEDDER_DIMENSION" in error.hint
    await made.close()


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("401", "HTTP 401"),
        ("429", "HTTP 429"),
        ("500", "HTTP 500"),
        ("hangs up", "RemoteProtocolError"),
        ("babbles", "JSONDecodeError"),
        ("not numbers", "ValueError"),
        ("not a list", "TypeError"),
        ("floods", "its answer is too long"),
    ],
)
async def test_an_endpoint_that_fails_is_named_with_the_reason(
    remote: OpenAIEmbedder, endpoint: Endpoint, manner: str, reason: str
) -> None:
    endpoint.manner = manner
    error = await failure(remote)
    assert not isinstance(error, DimensionError)
    assert error.message.endswith(reason)
    assert endpoint.url in error.message
    endpoint.manner = "well"
    assert (await remote.embed_queries(["x"])).shape == (1, 64)


@pytest.mark.parametrize("manner", ["hangs", "drips"])
async def test_an_endpoint_that_never_ends_costs_the_deadline_and_no_more(endpoint: Endpoint, manner: str) -> None:
    endpoint.manner = manner
    made = OpenAIEmbedder("small", url=endpoint.url, token=KEY, timeout_s=0.2)
    async with asyncio.timeout(30):
        assert "Timeout" in (await failure(made)).message
    await made.close()


async def test_an_unreachable_endpoint_is_an_embedder_error(endpoint: Endpoint) -> None:
    url = endpoint.url
    endpoint.stop()
    made = OpenAIEmbedder("small", url=url, token=KEY)
    assert "did not answer" in (await failure(made)).message
    await made.close()


@pytest.mark.parametrize("token", [KEY, f" {KEY}\n", f"{KEY}\nX-Evil: 1", f"{KEY}é", f"{KEY}\ud83d"])
@pytest.mark.parametrize("manner", ["401", "500", "hangs up", "babbles", "one too few"])
async def test_the_key_is_in_no_error_whatever_it_holds(endpoint: Endpoint, token: str, manner: str) -> None:
    endpoint.manner = manner
    made = OpenAIEmbedder("small", url=endpoint.url, token=token)
    error = await failure(made)
    output = "".join([*traceback.format_exception(error), repr(error), error.message, error.hint])
    assert "canary" not in output
    assert not any("X-Evil" in headers for headers, _ in endpoint.seen)
    await made.close()


async def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint) -> None:
    missing: Any = None
    monkeypatch.setitem(__import__("sys").modules, "httpx2", missing)
    made = OpenAIEmbedder("small", url=endpoint.url, token=KEY)
    error = await failure(made)
    assert "toolscout[openai]" in error.hint
