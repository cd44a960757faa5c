"""Every backend on the host, as the suites of `retain.testing` open it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from retain.contracts.backends.chat_kv import KvChatMemory
from retain.contracts.backends.chat_object import ObjectChatMemory
from retain.contracts.backends.chat_sql import SqlChatMemory
from retain.contracts.backends.vector_indexed import IndexedVectorMemory
from retain.contracts.backends.vector_process import ProcessVectorMemory
from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.chat import ChatMemory
from retain.contracts.documents import PreparedDocument
from retain.contracts.vectors import VectorMemory
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.kv import SqliteKv
from retain.host.object_sql import SqliteObjectSql
from retain.host.vectors import SqliteVectorIndex
from retain.namespace import Namespace
from retain.ports import Sql, VectorIndex
from retain.sealing.pii import Sealer
from tests.support.databases import migrated_d1

MIGRATIONS = Path(__file__).parents[2] / "migrations"
DIMENSIONS = 8
KEY = base64.b64encode(b"k" * 32).decode()
MODEL = "model"

ChatOf = Callable[[Namespace], ChatMemory]


class VectorsOf(Protocol):
    """Opens the documents of a namespace, for one embedding model."""

    def __call__(self, place: Namespace, model: str = MODEL) -> VectorMemory:
        """Return the documents."""
        ...


def namespace(name: str, tenant: str = "acme") -> Namespace:
    """Return the namespace for a suite's session or collection."""
    return Namespace("conformance", tenant, name)


def chat_on_objects() -> ChatOf:
    """Return a function that opens conversations in one object's SQLite."""
    sql = SqliteObjectSql.open()
    return lambda place: ObjectChatMemory(sql, place)


def chat_on_sql() -> ChatOf:
    """Return a function that opens conversations in one database."""
    sql = migrated_d1()
    return lambda place: SqlChatMemory(sql, place)


def chat_on_kv() -> ChatOf:
    """Return a function that opens conversations in one KV store."""
    kv = SqliteKv.open(ManualClock())
    return lambda place: KvChatMemory(kv, place)


def chat_on_kv_sealed() -> ChatOf:
    """Return a function that opens sealed conversations in one KV store."""
    kv, sealer = SqliteKv.open(ManualClock()), Sealer(HostCrypto(), KEY)
    return lambda place: KvChatMemory(kv, place, sealer=sealer)


def vectors_in_process() -> VectorsOf:
    """Return a function that opens documents in one dictionary."""
    store: dict[str, dict[str, PreparedDocument]] = {}

    def opened(place: Namespace, model: str = MODEL) -> VectorMemory:
        return ProcessVectorMemory(place, dimensions=DIMENSIONS, model=model, store=store)

    return opened


def vectors_on_sql() -> VectorsOf:
    """Return a function that opens documents in one database, searched exactly."""
    sql = migrated_d1()

    def opened(place: Namespace, model: str = MODEL) -> VectorMemory:
        return SqlVectorMemory(sql, place, dimensions=DIMENSIONS, model=model)

    return opened


def indexed(
    sql: Sql, index: VectorIndex, clock: ManualClock, place: Namespace, model: str = MODEL
) -> IndexedVectorMemory:
    """Return documents in a database, found by an index."""
    return IndexedVectorMemory(sql, index, clock, place, dimensions=DIMENSIONS, model=model)


def vectors_indexed() -> VectorsOf:
    """Return a function that opens documents in one database, found by an index that shows writes immediately."""
    sql, index, clock = migrated_d1(), SqliteVectorIndex.open(DIMENSIONS), ManualClock()

    def opened(place: Namespace, model: str = MODEL) -> VectorMemory:
        return indexed(sql, index, clock, place, model)

    return opened


CHATS: dict[str, Callable[[], ChatOf]] = {
    "durable-object": chat_on_objects,
    "d1": chat_on_sql,
    "kv": chat_on_kv,
    "kv-sealed": chat_on_kv_sealed,
}
VECTORS: dict[str, Callable[[], VectorsOf]] = {
    "in-process": vectors_in_process,
    "d1": vectors_on_sql,
    "vectorize": vectors_indexed,
}
