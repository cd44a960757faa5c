"""The published suites of the memory contracts, on the real bindings."""

from __future__ import annotations

import asyncio
import base64
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from retain.contracts.backends.chat_kv import KvChatMemory
from retain.contracts.backends.chat_object import ObjectChatMemory
from retain.contracts.backends.chat_sql import SqlChatMemory
from retain.contracts.backends.vector_indexed import IndexedVectorMemory
from retain.contracts.backends.vector_process import ProcessVectorMemory
from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.chat import ChatMemory
from retain.contracts.documents import PreparedDocument
from retain.contracts.vectors import VectorMemory
from retain.models.embedders.openai import OpenAiEmbedder
from retain.models.embedders.static import MODEL, StaticEmbedder, table_file
from retain.models.embedders.workers_ai import WorkersAiEmbedder
from retain.models.embedding import Embedder
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.retry import Retries
from retain.namespace import Namespace
from retain.sealing.pii import Sealer
from retain.testing import ChatMemorySuite, EmbedderSuite, Suite, VectorMemorySuite
from tests.workerd.inside.platform import bindings

_static: dict[str, StaticEmbedder] = {}


async def run(suite: Suite, name: str) -> dict[str, Any]:
    """Run one test of a suite; return whether it passed, and its traceback if not."""
    try:
        await suite.cases()[name]()
    except Exception:  # noqa: BLE001 -- the host's test shows it
        return {"passed": False, "error": traceback.format_exc()}
    return {"passed": True, "error": ""}


async def suite_of(backend: str, env: Any, asked: Mapping[str, Any]) -> Suite:
    """Return the suite of a backend of the Worker's. asked: for a model server, `base_url` and `api_key`."""
    sql = bindings.D1(env.DB)
    match backend:
        case "chat-d1":
            return _chats(lambda place: SqlChatMemory(sql, place))
        case "chat-kv":
            return _chats(lambda place: KvChatMemory(bindings.WorkersKv(env.KV), place))
        case "chat-kv-sealed":
            sealer = Sealer(bindings.WebCrypto(), base64.b64encode(b"k" * 32).decode())
            return _chats(lambda place: KvChatMemory(bindings.WorkersKv(env.KV), place, sealer=sealer))
        case "vectors-in-process":
            store: dict[str, dict[str, PreparedDocument]] = {}
            return _vectors(lambda place, model: ProcessVectorMemory(place, dimensions=8, model=model, store=store), 8)
        case "vectors-d1":
            return _vectors(lambda place, model: SqlVectorMemory(sql, place, dimensions=8, model=model), 8)
        case "vectors-vectorize":
            index = bindings.Vectorize(env.VECTORIZE)
            dimensions = await index.dimensions()
            return _vectors(
                lambda place, model: IndexedVectorMemory(
                    sql, index, bindings.now_ms, place, dimensions=dimensions, model=model
                ),
                dimensions,
            )
        case "embedder-static":
            return _embedders(static(), StaticEmbedder(lambda: b"no table"))
        case "embedder-openai":
            return _embedders(_openai(asked, asked["api_key"]), _openai(asked, "wrong"))
        case "embedder-workers-ai":
            return _embedders(_workers_ai(_run_locally), _workers_ai(_run_nowhere), _workers_ai(_Interrupted()))
    raise LookupError(f"there is no backend {backend}")


def suite_of_object(storage: Any) -> Suite:
    """Return the suite of conversations in this object's SQLite."""
    sql = bindings.DurableSql(storage)
    return _chats(lambda place: ObjectChatMemory(sql, place))


def static() -> StaticEmbedder:
    """Return the local embedder, on the table that was staged."""
    return _static.setdefault("shipped", StaticEmbedder(lambda: bindings.staged_bytes(table_file(MODEL))))


def _chats(memory_of: Any) -> Suite:
    async def open_session(session: str) -> ChatMemory:
        memory: ChatMemory = memory_of(Namespace("conformance", "acme", session))
        return memory

    return ChatMemorySuite.of(open_session)


def _vectors(memory_of: Any, dimensions: int) -> Suite:
    async def open_of_model(collection: str, model: str) -> VectorMemory:
        memory: VectorMemory = memory_of(Namespace("conformance", "acme", collection), model)
        return memory

    async def open_collection(collection: str) -> VectorMemory:
        return await open_of_model(collection, "model")

    return VectorMemorySuite.of(open_collection, dimensions=dimensions, open_of_model=open_of_model)


def _embedders(embedder: Embedder, failing: Embedder, interrupted: Embedder | None = None) -> Suite:
    async def opened() -> Embedder:
        return embedder

    async def opened_failing() -> Embedder:
        return failing

    async def opened_interrupted() -> Embedder:
        if interrupted is None:
            raise LookupError("it makes one request for a call")
        return interrupted

    return EmbedderSuite.of(opened, opened_failing, opened_interrupted if interrupted else None)


def _retries() -> Retries:
    return Retries(asyncio.sleep, lambda: 0.5, attempts=2, base_ms=1, cap_ms=2)


def _openai(asked: Mapping[str, Any], api_key: str) -> Embedder:
    endpoint = OpenAiEndpoint(asked["base_url"], bindings.fetch, _retries(), api_key=api_key)
    return OpenAiEmbedder(endpoint, model="text-embedding-test", dimensions=256)


def _workers_ai(call: Any) -> Embedder:
    return WorkersAiEmbedder(call, _retries(), model="@cf/baai/bge-base-en-v1.5", dimensions=256)


async def _run_locally(_model: str, inputs: Mapping[str, Any]) -> Mapping[str, object]:
    """Answer as Workers AI does, which has no local simulator, with the local model's vectors."""
    texts: Sequence[str] = inputs["text"]
    data = [[value * 3 for value in vector] for vector in await static().embed(texts)]
    return {"shape": [len(data), 256], "data": data, "pooling": "mean"}


class _Interrupted:
    """Workers AI that answers once, and then has no capacity."""

    answered = False

    async def __call__(self, model: str, inputs: Mapping[str, Any]) -> Mapping[str, object]:
        if self.answered:
            return await _run_nowhere(model, inputs)
        self.answered = True
        return await _run_locally(model, inputs)


async def _run_nowhere(_model: str, _inputs: Mapping[str, Any]) -> Mapping[str, object]:
    from retain.errors import Unavailable

    raise Unavailable("out of capacity")
