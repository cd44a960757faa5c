"""The objects of `env`, as the SDK gives them to a Worker, on the host's stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from retain.errors import ConstraintViolated, QuotaExceeded, RetainError, TenantElsewhere, TenantMoving
from retain.host.kv import SqliteKv
from retain.host.objects import SqliteObjects
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.ports import KeyPage, SqlResult, VectorEntry
from tests.shell.platform.ffi import Array, Buffer, JsException, PlainObject, array_of, jsnull, options_of
from tests.shell.platform.streams import ReadableStream


class Binding:
    """What every binding has. down: whether it fails; calls: what was called."""

    def __init__(self) -> None:
        self.down = False
        self.calls: list[str] = []

    @property
    def _binding(self) -> Any:
        """The platform's own object, without the SDK's conversions."""
        return self

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if self.down:
            raise JsException(f"{type(self).__name__} failed: internal error")


class ValueMap:
    """A `Map` of values."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def get(self, key: str) -> object:
        """Return a value, or undefined."""
        return self._values.get(key)


class Kv(Binding):
    """A KV namespace."""

    def __init__(self, store: SqliteKv) -> None:
        super().__init__()
        self.store = store

    async def get(self, key: str | Array) -> object:
        """Return the value, or null; of an array of keys a `Map` of their values."""
        if isinstance(key, Array):
            names = array_of(key)
            for name in names:
                self._note(f"get {name}")
            return ValueMap({name: await self.get_one(name) for name in names})
        self._note(f"get {key}")
        return await self.get_one(key)

    async def get_one(self, key: str) -> object:
        """Return the value, or null."""
        value = await self.store.get(key)
        return jsnull if value is None else value

    async def put(self, key: str, value: str, *, expirationTtl: int | None = None) -> None:
        """Write the value."""
        self._note(f"put {key}")
        await self.store.put(key, value, ttl_s=expirationTtl)

    async def delete(self, key: str) -> None:
        """Remove the key."""
        self._note(f"delete {key}")
        await self.store.delete(key)

    async def list(self, *, prefix: str, limit: int, cursor: str | None = None) -> dict[str, Any]:
        """Return a page of keys."""
        self._note(f"list {prefix}")
        page = await self.store.list(prefix, cursor=cursor, limit=limit)
        keys = [{"name": key} for key in page.keys]
        if page.cursor is None:
            return {"keys": keys, "list_complete": True}
        return {"keys": keys, "list_complete": False, "cursor": page.cursor}


class D1Statement:
    """A prepared statement. run: runs it."""

    def __init__(self, database: D1, sql: str, values: tuple[Any, ...] = ()) -> None:
        self._database = database
        self.sql = sql
        self.values = values

    def bind(self, *values: Any) -> D1Statement:
        """Return the statement with these values."""
        return D1Statement(self._database, self.sql, tuple(map(_bound, values)))

    async def all(self) -> PlainObject:
        """Run it."""
        return await self._database.all(self)


class D1(Binding):
    """A D1 database. trips: how often it was called; a batch is one call."""

    def __init__(self, store: SqliteSql) -> None:
        super().__init__()
        self.store = store
        self.trips = 0

    def prepare(self, sql: str) -> D1Statement:
        """Return a statement."""
        return D1Statement(self, sql)

    async def all(self, statement: D1Statement) -> PlainObject:
        """Run one statement."""
        self.trips += 1
        self._note(statement.sql)
        try:
            return _d1_result(await self.store.run(statement.sql, *statement.values))
        except RetainError as error:
            raise _d1_error(error) from None

    async def batch(self, statements: Array) -> Array:
        """Run the statements in one transaction."""
        self.trips += 1
        self._note("batch")
        prepared: list[D1Statement] = array_of(statements)
        for statement in prepared:
            self._note(statement.sql)
        try:
            results = await self.store.batch([(one.sql, one.values) for one in prepared])
        except RetainError as error:
            raise _d1_error(error) from None
        return Array([_d1_result(result) for result in results])


def _bound(value: Any) -> Any:
    """Return a value that was bound, as SQLite takes it. Raises: JsException for one that D1 refuses."""
    if value is None:
        raise JsException("D1_TYPE_ERROR: Type 'undefined' not supported")
    if value is jsnull:
        return None
    return value.to_bytes() if isinstance(value, Buffer) else value


def _d1_result(result: SqlResult) -> PlainObject:
    rows = Array([PlainObject({name: _read(value) for name, value in row.items()}) for row in result.rows])
    meta = PlainObject({"changes": float(result.changes), "size_after": float(result.database_bytes or 0)})
    return PlainObject({"results": rows, "meta": meta, "success": True})


def _read(value: Any) -> Any:
    if value is None:
        return jsnull
    return Array(list(value)) if isinstance(value, bytes) else value


def _d1_error(error: RetainError) -> JsException:
    constraint = "UNIQUE constraint failed: SQLITE_CONSTRAINT" if isinstance(error, ConstraintViolated) else "failed"
    if isinstance(error, QuotaExceeded):
        constraint = f"{error.code}: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_TRIGGER)"
    if isinstance(error, TenantElsewhere | TenantMoving):
        text = "tenant_elsewhere" if isinstance(error, TenantElsewhere) else "tenant_frozen"
        constraint = f"{text}: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_TRIGGER)"
    return JsException(f"D1_ERROR: {constraint}")


class R2Object:
    """An object of a bucket."""

    def __init__(self, key: str, content: bytes) -> None:
        self.key = key
        self._content = content

    async def arrayBuffer(self) -> memoryview:
        """Return its content."""
        return memoryview(self._content)

    @property
    def body(self) -> ReadableStream:
        """Its content, to be read once."""
        return ReadableStream(_pieces(self._content))


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 4096):
        yield content[start : start + 4096]


class R2(Binding):
    """An R2 bucket. types: the content types that were written, by key."""

    def __init__(self, store: SqliteObjects) -> None:
        super().__init__()
        self.store = store
        self.types: dict[str, str] = {}

    async def get(self, key: str) -> R2Object | None:
        """Return the object."""
        self._note(f"get {key}")
        content = await self.store.get(key)
        return None if content is None else R2Object(key, content)

    async def put(
        self,
        key: str,
        value: bytes | ReadableStream,
        *,
        httpMetadata: Mapping[str, str],
        onlyIf: Mapping[str, str] | None = None,
    ) -> object:
        """Write the object; return null if the condition does not hold."""
        self._note(f"put {key}")
        if isinstance(value, ReadableStream):
            pieces: list[bytes] = []
            while (piece := await value.take(None)) is not None:
                pieces.append(piece)
            value = b"".join(pieces)
        if onlyIf is None:
            await self.store.put(key, value)
        elif dict(onlyIf) != {"etagDoesNotMatch": "*"}:
            raise JsException("another condition than the shell uses")
        elif not await self.store.add(key, value):
            return jsnull
        self.types[key] = httpMetadata["contentType"]
        return R2Object(key, value)

    async def delete(self, key: str) -> None:
        """Remove the object."""
        self._note(f"delete {key}")
        await self.store.delete(key)

    async def list(self, *, prefix: str, limit: int, cursor: str | None = None) -> dict[str, Any]:
        """Return a page of objects."""
        self._note(f"list {prefix}")
        page: KeyPage = await self.store.list(prefix, cursor=cursor, limit=limit)
        found = [R2Object(key, b"") for key in page.keys]
        return {"objects": found, "truncated": page.cursor is not None} | (
            {} if page.cursor is None else {"cursor": page.cursor}
        )


class Vectorize(Binding):
    """A Vectorize index. Its answers are objects of JavaScript. asked: the options of each query."""

    def __init__(self, store: SqliteVectorIndex) -> None:
        super().__init__()
        self.store = store
        self.asked: list[dict[str, Any]] = []
        self.deleted: list[int] = []
        self.says = "internal error"

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if self.down:
            raise JsException(self.says)

    async def upsert(self, vectors: object) -> PlainObject:
        """Write vectors."""
        self._note("upsert")
        if not isinstance(vectors, Array):
            raise JsException("not an array")
        given = [options_of(vector) for vector in vectors.values]
        entries = [
            VectorEntry(one["id"], array_of(one["values"]), one["namespace"], options_of(one["metadata"]))
            for one in given
        ]
        return PlainObject({"mutationId": await self.store.upsert(entries)})

    async def query(self, vector: object, options: object) -> PlainObject:
        """Return the nearest vectors."""
        self._note("query")
        asked = PlainObject(options_of(options)).to_py()
        self.asked.append(asked)
        if asked.get("filter") == {}:
            raise JsException("VECTOR_QUERY_ERROR (code = 40025): an empty filter")
        whole = asked["returnMetadata"] == "all"
        if not whole and asked["returnMetadata"] != "none":
            raise JsException("VECTOR_QUERY_ERROR (code = 40026): invalid returnMetadata")
        found = await self.store.query(
            array_of(vector),
            namespace=asked["namespace"],
            filter=asked.get("filter", {}),
            top_k=asked["topK"],
            with_metadata=whole,
        )
        matches = [
            PlainObject({"id": one.id, "score": one.score} | ({"metadata": PlainObject(one.metadata)} if whole else {}))
            for one in found
        ]
        return PlainObject({"matches": Array(matches)})

    async def getByIds(self, ids: object) -> Array:
        """Return the vectors with these ids."""
        self._note("getByIds")
        return Array(
            [
                PlainObject({"id": v.id, "values": Array(v.values), "namespace": v.namespace} | _metadata(v))
                for v in await self.store.get_by_ids(array_of(ids))
            ]
        )

    async def deleteByIds(self, ids: object) -> PlainObject:
        """Remove the vectors with these ids, at most 100."""
        self._note("deleteByIds")
        self.deleted.append(len(array_of(ids)))
        if len(array_of(ids)) > 100:
            raise JsException("VECTOR_DELETE_ERROR (code = 40007): too many ids in payload; max id count is 100")
        return PlainObject({"mutationId": await self.store.delete_by_ids(array_of(ids))})

    async def describe(self) -> PlainObject:
        """Return the index's size."""
        self._note("describe")
        dimensions, count = await self.store.dimensions(), await self.store.count()
        return PlainObject({"dimensions": float(dimensions), "vectorCount": float(count)})


def _metadata(vector: VectorEntry) -> dict[str, Any]:
    """Return the metadata as the platform does, which leaves out those that are empty."""
    return {"metadata": PlainObject(vector.metadata)} if vector.metadata else {}


class Ai(Binding):
    """Workers AI. answer: what it answers to the inputs of a model."""

    def __init__(self, answer: Callable[[str, Mapping[str, object]], object]) -> None:
        super().__init__()
        self._answer = answer

    async def run(self, model: str, inputs: dict[str, object]) -> object:
        """Run a model."""
        self._note(f"run {model}")
        if type(inputs) is not dict:
            raise JsException("inputs are not an object")
        return self._answer(model, inputs)
