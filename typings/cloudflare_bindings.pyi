"""The objects of `env` and of a Durable Object, as the SDK provides them. No module of this name exists at run time."""

from collections.abc import Awaitable, Mapping
from typing import Any, NotRequired, Protocol, TypedDict, overload

from js import ReadableStream
from pyodide.ffi import JsNull, JsProxy, PyProxy

class D1Meta(TypedDict):
    changes: int
    size_after: int

class D1Result(TypedDict):
    results: list[dict[str, Any]]
    meta: D1Meta

class DirectD1Statement(Protocol):
    def bind(self, *values: object) -> DirectD1Statement: ...
    def all(self) -> Awaitable[JsProxy]: ...

class DirectD1(Protocol):
    """The platform's own object, without the SDK's conversions."""

    def prepare(self, sql: str) -> DirectD1Statement: ...
    def batch(self, statements: JsProxy) -> Awaitable[JsProxy]: ...

class D1Database(Protocol):
    _binding: DirectD1

class KvKey(TypedDict):
    name: str

class KvPage(TypedDict):
    keys: list[KvKey]
    list_complete: bool
    cursor: NotRequired[str]

class DirectKv(Protocol):
    """The platform's own object, without the SDK's conversions."""

    @overload
    def get(self, key: str) -> Awaitable[str | JsNull]: ...
    @overload
    def get(self, key: JsProxy) -> Awaitable[KvValues]: ...

class KvValues(Protocol):
    """A `Map` from keys to values."""

    def get(self, key: str) -> str | JsNull | None: ...

class KvNamespace(Protocol):
    _binding: DirectKv
    def put(self, key: str, value: str, *, expirationTtl: int = ...) -> Awaitable[None]: ...
    def delete(self, key: str) -> Awaitable[None]: ...
    def list(self, *, prefix: str, limit: int, cursor: str = ...) -> Awaitable[KvPage]: ...

class R2Object(Protocol):
    key: str
    body: ReadableStream
    def arrayBuffer(self) -> Awaitable[memoryview]: ...

class R2Page(TypedDict):
    objects: list[R2Object]
    truncated: bool
    cursor: NotRequired[str]

class R2Bucket(Protocol):
    def get(self, key: str) -> Awaitable[R2Object | None]: ...
    def put(
        self,
        key: str,
        value: bytes | ReadableStream,
        *,
        httpMetadata: Mapping[str, str],
        onlyIf: Mapping[str, str] = ...,
    ) -> Awaitable[R2Object | JsNull | None]: ...
    def delete(self, key: str) -> Awaitable[None]: ...
    def list(self, *, prefix: str, limit: int, cursor: str = ...) -> Awaitable[R2Page]: ...

class DirectVectorize(Protocol):
    """The platform's own object, without the SDK's conversions."""

    def upsert(self, vectors: JsProxy) -> Awaitable[JsProxy]: ...
    def query(self, vector: JsProxy, options: JsProxy) -> Awaitable[JsProxy]: ...
    def getByIds(self, ids: JsProxy) -> Awaitable[JsProxy]: ...
    def deleteByIds(self, ids: JsProxy) -> Awaitable[JsProxy]: ...
    def describe(self) -> Awaitable[JsProxy]: ...

class VectorizeIndex(Protocol):
    _binding: DirectVectorize

class DurableNamespace(Protocol):
    def getByName(self, name: str) -> object: ...

class RateLimitOutcome(Protocol):
    success: bool

class DirectRateLimit(Protocol):
    """The platform's own object, without the SDK's conversions."""

    def limit(self, options: JsProxy) -> Awaitable[RateLimitOutcome]: ...

class RateLimit(Protocol):
    _binding: DirectRateLimit

class Ai(Protocol):
    def run(self, model: str, inputs: Mapping[str, object]) -> Awaitable[Any]: ...

class HasAi(Protocol):
    AI: Ai

class ChangeCount(Protocol):
    n: int

class SqlCursor(Protocol):
    def toArray(self) -> JsProxy: ...
    def one(self) -> ChangeCount: ...

class DirectSql(Protocol):
    """The platform's own object, without the SDK's conversions."""

    def exec(self, sql: str, *values: object) -> SqlCursor: ...

class DurableSqlStorage(Protocol):
    _binding: DirectSql

class DirectStorage(Protocol):
    """The platform's own object, without the SDK's conversions."""

    def transactionSync(self, callback: PyProxy[Any]) -> None: ...

class DurableStorage(Protocol):
    sql: DurableSqlStorage
    _binding: DirectStorage
    def setAlarm(self, at_ms: int) -> Awaitable[None]: ...
    def getAlarm(self) -> Awaitable[float | None]: ...

class DurableContext(Protocol):
    storage: DurableStorage

class Env(HasAi, Protocol):
    """The Worker's bindings. Variables and secrets are read by name."""

    KV: KvNamespace
    DB: D1Database
    COLD: R2Bucket
    VECTORIZE: VectorizeIndex
    AGENT_RUNTIME: DurableNamespace
    TENANT_WRITER: DurableNamespace
    _env: Any
