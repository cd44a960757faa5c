"""Vectors of two embedding models never meet in one namespace, however they come there."""

from __future__ import annotations

import asyncio

import pytest

from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.vectors import DeletableVectorMemory, VectorDocument
from retain.errors import ConstraintViolated, Misconfigured
from retain.host.sql import SqliteSql
from tests.contracts.backends import DIMENSIONS, VECTORS, namespace
from tests.support.databases import migrated_d1

PLACE = namespace("documents")
VECTOR = [1.0, *[0.0] * (DIMENSIONS - 1)]


def document(id_: str) -> VectorDocument:
    return VectorDocument(id_, f"content of {id_}", VECTOR)


def of_model(sql: SqliteSql, model: str) -> SqlVectorMemory:
    return SqlVectorMemory(sql, PLACE, dimensions=DIMENSIONS, model=model)


async def models_of(sql: SqliteSql) -> dict[str, str]:
    rows = (await sql.run("SELECT document_id, model FROM vector_documents ORDER BY document_id")).rows
    return {row["document_id"]: row["model"] for row in rows}


async def without_names(sql: SqliteSql) -> None:
    """Make the documents those of version 0.1.0."""
    await sql.run("UPDATE vector_documents SET model = ''")


@pytest.mark.parametrize("backend", VECTORS)
async def test_another_models_memory_is_refused_with_both_names(backend: str) -> None:
    memory_of = VECTORS[backend]()
    await memory_of(PLACE, "small").store([document("a")])
    other = memory_of(PLACE, "large")
    for work in (other.search(VECTOR), other.store([document("b")])):
        with pytest.raises(Misconfigured) as refused:
            await work
        assert refused.value.code == "vector_model_changed"
        assert dict(refused.value.details) == {"expected": "large", "found": "small"}


@pytest.mark.parametrize("backend", VECTORS)
async def test_another_model_may_have_the_namespace_when_it_is_empty(backend: str) -> None:
    memory_of = VECTORS[backend]()
    await memory_of(PLACE, "small").store([document("a")])
    other = memory_of(PLACE, "large")
    assert isinstance(other, DeletableVectorMemory)
    await other.delete(["a"])
    await other.store([document("b")])
    assert [one.id for one in await other.search(VECTOR)] == ["b"]


@pytest.mark.parametrize("backend", VECTORS)
async def test_models_in_two_namespaces_do_not_disturb_each_other(backend: str) -> None:
    memory_of = VECTORS[backend]()
    for name in ("small", "large"):
        await memory_of(namespace(name), name).store([document("a")])
    for name in ("small", "large"):
        assert [one.id for one in await memory_of(namespace(name), name).search(VECTOR)] == ["a"]


async def test_of_two_models_that_store_at_once_one_is_refused() -> None:
    sql = migrated_d1()
    memories = [of_model(sql, name) for name in ("small", "large")]
    done = await asyncio.gather(*(each.store([document("a")]) for each in memories), return_exceptions=True)
    assert [type(each) for each in done if each is not None] == [Misconfigured]
    assert len(await models_of(sql)) == 1


@pytest.mark.parametrize("model", ["large", "small", ""])
async def test_the_database_itself_refuses_a_second_model(model: str) -> None:
    sql = migrated_d1()
    await of_model(sql, "medium").store([document("a")])
    insert = (
        "INSERT INTO vector_documents (namespace_key, document_id, tenant_id, document, embedding, indexed, model)"
        " VALUES (?, 'b', 'acme', '[]', '', 0, ?)"
    )
    with pytest.raises(ConstraintViolated):
        await sql.run(insert, str(PLACE), model)
    await sql.run(insert, str(PLACE), "medium")


async def test_documents_without_a_name_are_found_and_get_the_first_name_that_stores() -> None:
    sql = migrated_d1()
    await of_model(sql, "old").store([document("a"), document("b")])
    await without_names(sql)
    assert [one.id for one in await of_model(sql, "new").search(VECTOR)] == ["a", "b"]
    await of_model(sql, "new").store([])
    assert await models_of(sql) == {"a": "", "b": ""}
    await of_model(sql, "new").store([document("b"), document("c")])
    assert await models_of(sql) == {"a": "new", "b": "new", "c": "new"}
    with pytest.raises(Misconfigured):
        await of_model(sql, "old").search(VECTOR)


async def test_a_refused_store_names_nothing() -> None:
    sql = migrated_d1()
    await of_model(sql, "old").store([document("a"), document("b")])
    await sql.run("UPDATE vector_documents SET model = '' WHERE document_id = 'a'")
    with pytest.raises(Misconfigured):
        await of_model(sql, "new").store([document("c")])
    assert await models_of(sql) == {"a": "", "b": "old"}


async def test_the_check_of_an_insert_reads_an_index() -> None:
    sql = migrated_d1()
    plan = await sql.run(
        "EXPLAIN QUERY PLAN SELECT 1 FROM vector_documents WHERE namespace_key = ? AND model > '' AND model < ?",
        "k",
        "m",
    )
    assert all("vector_documents_by_model" in row["detail"] for row in plan.rows)
