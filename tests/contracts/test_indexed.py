"""Documents found by an index are also found when the index lags, loses vectors, or is down."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.contracts.backends.vector_indexed import FRESH_MS, IndexedVectorMemory
from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.stored.document_index import DocumentIndex, index_namespace
from retain.contracts.stored.packing import packed
from retain.contracts.vectors import VectorDocument, VectorMemory
from retain.errors import LimitExceeded, Misconfigured, RetainError, Unavailable
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.limits.d1_calls import budget
from retain.limits.vectorize import GRACE_MS, LAG_MS
from retain.ports import MetadataFilter, Vector, VectorEntry, VectorMatch
from retain.testing import VectorMemorySuite
from tests.contracts.backends import DIMENSIONS, MODEL, indexed, namespace
from tests.support.counted_d1 import CountedD1
from tests.support.databases import migrated_d1

PLACE = namespace("documents")


class LateIndex:
    """An index that shows mutations only when `show` is called, and can be down."""

    def __init__(self) -> None:
        self.shown = SqliteVectorIndex.open(DIMENSIONS)
        self.filterable = self.shown.filterable
        self.lag_ms = LAG_MS
        self.waiting: list[Sequence[VectorEntry] | tuple[str, ...]] = []
        self.down = False
        self.before_upsert: Callable[[], Awaitable[None]] | None = None

    async def show(self) -> None:
        waiting, self.waiting = self.waiting, []
        for mutation in waiting:
            if isinstance(mutation, tuple):
                await self.shown.delete_by_ids(mutation)
            else:
                await self.shown.upsert(mutation)

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        self._reach()
        before, self.before_upsert = self.before_upsert, None
        if before is not None:
            await before()
        self.waiting.append(list(entries))
        return "mutation"

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        self._reach()
        self.waiting.append(tuple(ids))
        return "mutation"

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        self._reach()
        return await self.shown.query(
            vector, namespace=namespace, filter=filter, top_k=top_k, with_metadata=with_metadata
        )

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        self._reach()
        return await self.shown.get_by_ids(ids)

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def count(self) -> int:
        return await self.shown.count()

    def _reach(self) -> None:
        if self.down:
            raise Unavailable("the index is down")


class Setting:
    """A database, an index that lags, and a clock."""

    def __init__(self) -> None:
        self.sql: SqliteSql = migrated_d1()
        self.index = LateIndex()
        self.clock = ManualClock()
        self.memory: IndexedVectorMemory = indexed(self.sql, self.index, self.clock, PLACE)
        self.owed = DocumentIndex(self.sql, self.index, self.clock)

    def close(self) -> None:
        self.sql.close()
        self.index.shown.close()

    async def vectors(self) -> list[str]:
        """Return the ids of all the tenant's vectors that the index shows."""
        return sorted(match.id for match in await self.near())

    async def near(self) -> list[VectorMatch]:
        return await self.index.shown.query(vector(1.0), namespace=index_namespace("acme"), filter={}, top_k=100)

    async def rest(self) -> None:
        """Let the index catch up, and let every write become old."""
        await self.owed.reconcile()
        await self.index.show()
        self.clock.advance(max(FRESH_MS, GRACE_MS) + 1)
        await self.owed.reconcile()
        await self.index.show()


@pytest.fixture
def setting() -> Iterator[Setting]:
    setting = Setting()
    yield setting
    setting.close()


def vector(*leading: float) -> list[float]:
    return [*leading, *[0.0] * (DIMENSIONS - len(leading))]


def document(id_: str, *leading: float, content: str = "content") -> VectorDocument:
    return VectorDocument(id_, content, vector(*leading))


async def found(memory: VectorMemory, *leading: float, top_k: int = 10) -> list[str]:
    return [one.id for one in await memory.search(vector(*leading), top_k=top_k)]


@pytest.mark.parametrize("name", VectorMemorySuite.names())
async def test_the_suite_passes_while_the_index_shows_nothing(setting: Setting, name: str) -> None:
    async def open_collection(collection: str) -> VectorMemory:
        return indexed(setting.sql, setting.index, setting.clock, namespace(collection))

    async def open_of_model(collection: str, model: str) -> VectorMemory:
        return indexed(setting.sql, setting.index, setting.clock, namespace(collection), model)

    suite = VectorMemorySuite.of(open_collection, dimensions=DIMENSIONS, open_of_model=open_of_model)
    await suite.cases()[name]()


async def test_old_documents_are_found_by_the_index_alone(setting: Setting) -> None:
    await setting.memory.store([document("a", 1.0), document("b", 1.0, 1.0)])
    await setting.rest()
    assert await found(setting.memory, 1.0) == ["a", "b"]
    await setting.index.shown.delete_by_ids(await setting.vectors())
    assert await found(setting.memory, 1.0) == []


async def test_a_store_succeeds_while_the_index_is_down_and_reaches_it_later(setting: Setting) -> None:
    setting.index.down = True
    await setting.memory.store([document("a", 1.0)])
    with pytest.raises(Unavailable):
        await found(setting.memory, 1.0)
    setting.index.down = False
    assert await found(setting.memory, 1.0) == ["a"]
    await setting.rest()
    assert await setting.vectors() == ["document.1.1"]
    assert await found(setting.memory, 1.0) == ["a"]


async def test_what_was_replaced_or_deleted_is_removed_from_the_index(setting: Setting) -> None:
    await setting.memory.store([document("a", 1.0), document("b", 1.0)])
    await setting.index.show()
    await setting.memory.store([document("a", 0.0, 1.0)])
    await setting.memory.delete(["b"])
    assert await found(setting.memory, 1.0) == ["a"], "before the index knows of it"
    await setting.rest()
    assert await setting.vectors() == ["document.1.2"]
    assert (await setting.sql.run("SELECT * FROM vector_removals")).rows == []


async def test_a_write_that_reaches_the_index_after_its_removal_is_removed_again(setting: Setting) -> None:
    await setting.memory.store([document("a", 1.0)])
    [late] = setting.index.waiting
    await setting.memory.delete(["a"])
    await setting.index.show()
    assert not isinstance(late, tuple)
    await setting.index.upsert(late)  # by a process that was slow
    await setting.rest()
    assert await setting.vectors() == []


async def test_a_writer_slower_than_the_grace_time_removes_what_it_wrote_too_late(setting: Setting) -> None:
    async def meanwhile() -> None:
        other = indexed(setting.sql, setting.index, setting.clock, PLACE)
        await other.store([document("a", 0.0, 1.0, content="newer")])
        await setting.rest()

    setting.index.before_upsert = meanwhile
    await setting.memory.store([document("a", 1.0, content="older")])
    await setting.rest()
    assert await setting.vectors() == ["document.1.2"]
    assert [one.content for one in await setting.memory.search(vector(1.0))] == ["newer"]


@pytest.mark.parametrize(("refused", "calls"), [(False, 1), (True, 2)], ids=["of other dimensions", "refused"])
async def test_tenants_that_cannot_be_settled_do_not_keep_the_calls_of_d1_from_others(
    setting: Setting, refused: bool, calls: int
) -> None:
    known, other = (packed(array("f", [1.0]) * dimensions) for dimensions in (DIMENSIONS, DIMENSIONS * 2))
    for number in range(12):
        await setting.sql.run(_OWED, f"a:late-{number}:s", f"late-{number}", known if refused else other)
    await setting.sql.run(_OWED, "a:other:s", "other", known)
    upsert = setting.index.upsert

    async def refusing(entries: Sequence[VectorEntry]) -> str:
        if entries[0].namespace != index_namespace("other"):
            raise Unavailable("refused")
        return await upsert(entries)

    setting.index.upsert = refusing  # type: ignore[method-assign]
    for _ in range(calls):
        setting.clock.advance(1000)
        with budget(35):
            await DocumentIndex(CountedD1(setting.sql), setting.index, setting.clock).reconcile()
    await setting.index.show()
    found = await setting.index.shown.query(vector(1.0), namespace=index_namespace("other"), filter={}, top_k=9)
    assert len(found) == 1


_OWED = """
INSERT INTO vector_documents (namespace_key, document_id, tenant_id, document, embedding, model, indexed)
VALUES (?, 'd', ?, '{}', ?, 'm', 1)
"""


async def test_removed_documents_do_not_displace_others(setting: Setting) -> None:
    await setting.memory.store([document(f"near-{n}", 1.0, n / 1000) for n in range(20)])
    await setting.memory.store([document("far", -1.0)])
    await setting.rest()
    await setting.memory.delete([f"near-{n}" for n in range(20)])
    assert await found(setting.memory, 1.0, top_k=1) == ["far"]


async def test_an_index_of_other_dimensions_is_refused_before_anything_is_stored(setting: Setting) -> None:
    other = IndexedVectorMemory(setting.sql, setting.index, setting.clock, PLACE, dimensions=3, model="m")
    with pytest.raises(Misconfigured) as refused:
        await other.store([VectorDocument("a", "a", [1.0, 0.0, 0.0])])
    assert refused.value.code == "vector_dimensions_changed"
    assert (await setting.sql.run("SELECT * FROM vector_documents")).rows == []


async def test_a_namespace_with_vectors_of_other_dimensions_is_an_error_not_an_empty_answer(
    setting: Setting,
) -> None:
    await SqlVectorMemory(setting.sql, PLACE, dimensions=3, model="m").store(
        [VectorDocument("a", "a", [1.0, 0.0, 0.0])]
    )
    with pytest.raises(Misconfigured) as refused:
        await SqlVectorMemory(setting.sql, PLACE, dimensions=4, model="m").search([1.0, 0.0, 0.0, 0.0])
    assert refused.value.code == "vector_dimensions_changed"


async def test_more_than_the_index_returns_is_refused(setting: Setting) -> None:
    with pytest.raises(LimitExceeded) as refused:
        await setting.memory.search(vector(1.0), top_k=101)
    assert refused.value.code == "vector_top_k_too_large"


async def test_all_documents_can_be_read_page_by_page(setting: Setting) -> None:
    await setting.memory.store([document(f"{n:02}", 3.0, 4.0) for n in range(7)])
    pages = [await setting.memory.documents(limit=5), await setting.memory.documents(after="04", limit=5)]
    assert [one.id for page in pages for one in page] == [f"{n:02}" for n in range(7)]
    assert list(pages[0][0].embedding) == pytest.approx(vector(0.6, 0.8))


class FailingSql:
    """A database that fails at a call, before or after its effect."""

    def __init__(self, inner: SqliteSql, nth: int, *, after: bool) -> None:
        self.inner = inner
        self.left = nth
        self.after = after

    async def run(self, sql: str, *values: object) -> object:
        return await self._counted(lambda: self.inner.run(sql, *values))  # type: ignore[arg-type]

    async def batch(self, statements: object) -> object:
        return await self._counted(lambda: self.inner.batch(statements))  # type: ignore[arg-type]

    async def _counted(self, call: object) -> object:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Unavailable("planned")
        result = await call()  # type: ignore[operator]
        if self.left == 0:
            raise Unavailable("planned")
        return result


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_failure_anywhere_in_a_store_leaves_all_of_it_or_nothing_and_the_index_agrees_later(
    after: bool,
) -> None:
    nth = 0
    while True:
        nth += 1
        setting = Setting()
        await setting.memory.store([document("a", 1.0, content="old"), document("b", 1.0, content="old")])
        failing = FailingSql(setting.sql, nth, after=after)
        memory = indexed(failing, setting.index, setting.clock, PLACE)  # type: ignore[arg-type]
        raised = False
        try:
            await memory.store([document("a", 0.0, 1.0, content="new"), document("c", 1.0, content="new")])
        except RetainError:
            raised = True
        seen = {one.id: one.content for one in await setting.memory.search(vector(1.0))}
        new = {"a": "new", "b": "old", "c": "new"}
        assert seen == new or (raised and seen == {"a": "old", "b": "old"}), f"at call {nth}"
        await setting.rest()
        assert {one.id: one.content for one in await setting.memory.search(vector(1.0))} == seen
        rows = (await setting.sql.run("SELECT number, version FROM vector_documents")).rows
        assert await setting.vectors() == sorted(f"document.{row['number']}.{row['version']}" for row in rows)
        setting.close()
        if failing.left > 0:
            break
    assert nth > 3


_ids = st.sampled_from("abcd")
_vectors = st.sampled_from([(1.0,), (1.0, 1.0), (0.0, 1.0), (-1.0, 0.5)])
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("store"), _ids, _vectors),
        st.tuples(st.just("delete"), _ids),
        st.tuples(st.just("show")),
        st.tuples(st.just("age")),
        st.tuples(st.just("down")),
        st.tuples(st.just("up")),
        st.tuples(st.just("settle")),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(_steps)
async def test_whatever_the_index_shows_a_search_equals_exact_search(steps: list[tuple[object, ...]]) -> None:
    setting = Setting()
    exact = SqlVectorMemory(setting.sql, namespace("exact"), dimensions=DIMENSIONS, model=MODEL)
    for step in steps:
        match step:
            case ("store", str(id_), tuple(leading)):
                for memory in (setting.memory, exact):
                    await memory.store([document(id_, *leading, content=f"{id_} {leading}")])
            case ("delete", str(id_)):
                for memory in (setting.memory, exact):
                    await memory.delete([id_])
            case ("show",):
                await setting.index.show()
            case ("age",):
                if not setting.index.down:
                    await setting.rest()
            case ("settle",):
                with suppress(Unavailable):
                    await setting.owed.settle("acme")
            case ("down",) | ("up",):
                setting.index.down = step == ("down",)
    setting.index.down = False
    for leading in ((1.0,), (0.5, 1.0)):
        assert await setting.memory.search(vector(*leading)) == await exact.search(vector(*leading))
    await setting.rest()
    rows = (await setting.sql.run("SELECT number, version FROM vector_documents WHERE indexed = 1")).rows
    assert await setting.vectors() == sorted(f"document.{row['number']}.{row['version']}" for row in rows)
    setting.close()


async def test_two_writers_of_one_document_leave_one_version_everywhere(setting: Setting) -> None:
    memories = [indexed(setting.sql, setting.index, setting.clock, PLACE) for _ in range(4)]
    await asyncio.gather(
        *(memory.store([document("a", 1.0, n, content=f"{n}")]) for n, memory in enumerate(memories, start=1))
    )
    await setting.rest()
    assert len(await setting.vectors()) == 1
    [one] = await setting.memory.search(vector(1.0))
    [stored] = await setting.memory.documents()
    assert one.content == stored.content
