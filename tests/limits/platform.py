"""The platform's limits, tried on the host's stores, which refuse as the platform does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from retain.host.clock import ManualClock
from retain.host.connection import open_database
from retain.host.kv import SqliteKv
from retain.host.objects import SqliteObjects
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.limits import storage, vectorize
from retain.limits.d1_calls import budget, spend
from retain.limits.vector_filter import check_filter, indexed_text
from retain.ports import SqlValue, VectorEntry
from tests.limits.limit import Limit, text_of

_STORAGE = "retain.limits.storage."
_VECTORS = "retain.limits.vectorize."


async def _select(sql: str, *values: SqlValue) -> Sequence[object]:
    with closing(SqliteSql(open_database(":memory:"))) as database:
        return list((await database.run(sql, *values)).rows[0].values())


async def _parameters(count: int) -> None:
    values = [float(number) for number in range(count)]
    columns = ", ".join(f"? AS c{number}" for number in range(count))
    assert await _select(f"SELECT {columns}", *values) == values


async def _statement(size: int) -> None:
    begun = "SELECT '語' AS a"
    assert await _select(begun + " " * (size - len(begun.encode()))) == ["語"]


async def _value(size: int) -> None:
    text = text_of(size)
    assert await _select("SELECT ?", text) == [text]


async def _blob(size: int) -> None:
    assert await _select("SELECT ?", bytes(size)) == [bytes(size)]


async def _integer(number: int) -> None:
    assert await _select("SELECT ?", number) == [number]
    assert await _select("SELECT ?", -number) == [-number]


def _kv() -> closing[SqliteKv]:
    return closing(SqliteKv.open(ManualClock(1_700_000_000_000)))


async def _kv_key(size: int) -> None:
    with _kv() as kv:
        await kv.put(text_of(size), "value")
        assert await kv.get(text_of(size)) == "value"


async def _kv_value(size: int) -> None:
    with _kv() as kv:
        text = text_of(size)
        await kv.put("key", text)
        assert await kv.get("key") == text


async def _kv_ttl(seconds: int) -> None:
    with _kv() as kv:
        await kv.put("key", "value", ttl_s=seconds)
        assert await kv.get("key") == "value"


async def _kv_page(count: int) -> None:
    with _kv() as kv:
        names = [f"{number:05}" for number in range(count)]
        for name in names:
            await kv.put(name, "-")
        assert (await kv.list("", limit=count)).keys == names


async def _object_key(size: int) -> None:
    with closing(SqliteObjects.open()) as objects:
        await objects.put(text_of(size), b"value")
        assert await objects.get(text_of(size)) == b"value"


async def _vectors(entries: Sequence[VectorEntry], dimensions: int = 2) -> None:
    with closing(SqliteVectorIndex.open(dimensions)) as index:
        await index.upsert(entries)
        found = [one for entry in entries[:20] for one in await index.get_by_ids([entry.id])]
        assert [one.id for one in found] == [entry.id for entry in entries[:20]]
        assert [dict(one.metadata) for one in found] == [dict(entry.metadata) for entry in entries[:20]]
        assert await index.count() == len(entries)


def _entry(id_: str = "id", namespace: str = "n", values: Sequence[float] = (1.0, 0.0), **metadata: str) -> VectorEntry:
    return VectorEntry(id_, list(values), namespace, metadata)


async def _dimensions(count: int) -> None:
    # An index with more cannot be provisioned; the specification's check is the one that an operator meets.
    assert count <= vectorize.MAX_DIMENSIONS or _no_dimensions(count)
    await _vectors([_entry(values=[1.0] * count)], count)


def _no_dimensions(count: int) -> bool:
    vectorize.check_vector([1.0] * count, vectorize.MAX_DIMENSIONS)
    return True


async def _read_ids(count: int) -> None:
    with closing(SqliteVectorIndex.open(2)) as index:
        ids = [f"id-{number}" for number in range(count)]
        await index.upsert([_entry(one) for one in ids])
        assert sorted(one.id for one in await index.get_by_ids(ids)) == sorted(ids)


async def _deleted_ids(count: int) -> None:
    with closing(SqliteVectorIndex.open(2)) as index:
        ids = [f"id-{number}" for number in range(count)]
        for start in range(0, count, 500):
            await index.upsert([_entry(one) for one in ids[start : start + 500]])
        await index.delete_by_ids(ids)
        assert await index.count() == 0


async def _top_k(count: int, *, with_metadata: bool) -> None:
    with closing(SqliteVectorIndex.open(2)) as index:
        await index.upsert([_entry(f"id-{number}") for number in range(count)])
        found = await index.query([1.0, 0.0], namespace="n", filter={}, top_k=count, with_metadata=with_metadata)
        assert len(found) == count


def _filter(size: int) -> None:
    criteria = {"subject": text_of(size - len('{"subject":""}'))}
    check_filter(criteria)


def _distinct(size: int) -> None:
    """The index distinguishes two texts that differ only in their last byte, up to the limit."""
    one, other = text_of(size - 1) + "a", text_of(size - 1) + "b"
    if indexed_text(one) == indexed_text(other):
        raise ValueError


def _upstream_calls(count: int) -> None:
    with budget(storage.MAX_QUERIES):
        for _ in range(count):
            spend()


LIMITS = (
    Limit(constant=_STORAGE + "MAX_PARAMETERS", attempt=_parameters, code="too_many_parameters"),
    Limit(constant=_STORAGE + "MAX_STATEMENT_BYTES", attempt=_statement, code="statement_too_long"),
    Limit(constant=_STORAGE + "MAX_VALUE_BYTES", what="text", attempt=_value, code="value_too_large"),
    Limit(constant=_STORAGE + "MAX_VALUE_BYTES", what="bytes", attempt=_blob, code="value_too_large"),
    Limit(constant=_STORAGE + "MAX_INTEGER", attempt=_integer, code="unsupported_value"),
    Limit(constant=_STORAGE + "MAX_QUERIES", attempt=_upstream_calls, code="d1_calls_used_up"),
    Limit(constant=_STORAGE + "MAX_KV_KEY_BYTES", attempt=_kv_key, code="key_too_long"),
    Limit(constant=_STORAGE + "MAX_KV_VALUE_BYTES", attempt=_kv_value, code="value_too_large"),
    Limit(constant=_STORAGE + "MIN_KV_TTL_S", attempt=_kv_ttl, code="invalid_ttl", least=True),
    Limit(constant=_STORAGE + "MAX_OBJECT_KEY_BYTES", attempt=_object_key, code="key_too_long"),
    Limit(constant=_STORAGE + "MAX_PAGE", attempt=_kv_page, code="invalid_limit"),
    Limit(constant=_VECTORS + "MAX_DIMENSIONS", attempt=_dimensions, code="vector_dimensions"),
    Limit(
        constant=_VECTORS + "MAX_ID_BYTES",
        attempt=lambda size: _vectors([_entry(text_of(size))]),
        code="vector_id_too_long",
    ),
    Limit(
        constant=_VECTORS + "MAX_NAMESPACE_BYTES",
        attempt=lambda size: _vectors([_entry(namespace=text_of(size))]),
        code="vector_namespace_too_long",
    ),
    Limit(
        constant=_VECTORS + "MAX_METADATA_BYTES",
        attempt=lambda size: _vectors([_entry(a=text_of(size - len('{"a":""}')))]),
        code="vector_metadata_too_large",
    ),
    Limit(
        constant=_VECTORS + "MAX_UPSERT",
        attempt=lambda count: _vectors([_entry(f"id-{number}") for number in range(count)]),
        code="vector_batch_too_large",
    ),
    Limit(
        constant=_VECTORS + "MAX_TOP_K",
        attempt=lambda count: _top_k(count, with_metadata=False),
        code="vector_top_k_too_large",
    ),
    Limit(
        constant=_VECTORS + "MAX_TOP_K_WITH_METADATA",
        attempt=lambda count: _top_k(count, with_metadata=True),
        code="vector_top_k_too_large",
    ),
    Limit(constant=_VECTORS + "MAX_GET_IDS", attempt=_read_ids, code="vector_ids_too_many"),
    Limit(constant=_VECTORS + "MAX_DELETE_IDS", attempt=_deleted_ids, code="vector_ids_too_many"),
    Limit(constant="retain.limits.vector_filter.MAX_FILTER_BYTES", attempt=_filter, code="vector_filter_too_large"),
    Limit(constant="retain.limits.vector_filter.INDEXED_BYTES", attempt=_distinct, code=None),
)
