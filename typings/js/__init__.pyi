from collections.abc import Awaitable, Iterable
from typing import Any, Literal, overload

from pyodide.ffi import JsProxy

class Date:
    @staticmethod
    def now() -> float: ...

class DateTimeFormat:
    @staticmethod
    def new(locale: str, *, timeZone: str, timeZoneName: Literal["longOffset"]) -> DateTimeFormat: ...
    def format(self, at_ms: int) -> str: ...

class _Intl:
    DateTimeFormat: type[DateTimeFormat]

Intl: _Intl

class Object:
    @staticmethod
    def fromEntries(entries: object) -> JsProxy: ...

class Error:
    name: str
    @staticmethod
    def new(message: str) -> Error: ...

XMLHttpRequest: type  # a Worker has none: `adapters/blocking_http.py` sets it

class Promise:
    @staticmethod
    def reject(reason: Error) -> Awaitable[None]: ...

class URL:
    @staticmethod
    def canParse(url: str) -> bool: ...

class PlainObject(JsProxy):
    """What `JSON.parse` makes of an object."""

    body: object
    signal: AbortSignal

class JSON:
    @staticmethod
    def parse(text: str) -> PlainObject: ...

class ArrayBuffer(JsProxy):
    def to_bytes(self) -> bytes: ...

class Uint8Array(JsProxy):
    buffer: ArrayBuffer
    byteLength: int  # noqa: N815 -- the platform's name
    @staticmethod
    def new(source: int | ArrayBuffer) -> Uint8Array: ...
    def to_bytes(self) -> bytes: ...

class TextEncoder:
    @staticmethod
    def new() -> TextEncoder: ...
    def encode(self, text: str) -> Uint8Array: ...

class Headers:
    @staticmethod
    def new() -> Headers: ...
    def get(self, name: str) -> object: ...
    def set(self, name: str, value: str) -> None: ...
    def keys(self) -> Iterable[object]: ...

class Piece:
    done: bool
    value: Uint8Array

class StreamReader:
    def read(self) -> Awaitable[Piece]: ...
    def cancel(self) -> Awaitable[None]: ...
    def releaseLock(self) -> None: ...

class ByobReader:
    def read(self, view: Uint8Array) -> Awaitable[Piece]: ...
    def releaseLock(self) -> None: ...

class StreamWriter:
    def write(self, chunk: Uint8Array | JsProxy) -> Awaitable[None]: ...
    def close(self) -> Awaitable[None]: ...
    def abort(self, reason: str) -> Awaitable[None]: ...

class WritableStream:
    def getWriter(self) -> StreamWriter: ...

class ReadableStream:
    @overload
    def getReader(self) -> StreamReader: ...
    @overload
    def getReader(self, *, mode: Literal["byob"]) -> ByobReader: ...
    def cancel(self) -> Awaitable[None]: ...

class TransformStream:
    readable: ReadableStream
    writable: WritableStream
    @staticmethod
    def new() -> TransformStream: ...

class FixedLengthStream(TransformStream):
    @staticmethod
    def new(length: int) -> FixedLengthStream: ...  # type: ignore[override]

class Request:
    method: str
    url: str
    headers: Headers
    body: ReadableStream | None
    def arrayBuffer(self) -> Awaitable[ArrayBuffer]: ...

class Response:
    status: int
    headers: Headers
    body: ReadableStream | None
    @staticmethod
    def new(body: object, options: PlainObject = ...) -> Response: ...
    def arrayBuffer(self) -> Awaitable[ArrayBuffer]: ...

class AbortSignal(JsProxy):
    @staticmethod
    def timeout(ms: int) -> AbortSignal: ...
    @staticmethod
    def any(signals: JsProxy) -> AbortSignal: ...

class AbortController:
    signal: AbortSignal
    @staticmethod
    def new() -> AbortController: ...
    def abort(self) -> None: ...

class Sent:
    """What `send` in `adapters/exchange.mjs` returns."""

    answer: Awaitable[Response]
    def giveUp(self) -> None: ...

class Exchanged:
    """What the `answer` of an exchange becomes. size: -1 where there is no content because it has not been received."""

    response: Response
    content: ArrayBuffer
    size: int

class Exchange:
    """What `exchange` in `adapters/exchange.mjs` returns."""

    answer: Awaitable[Exchanged]
    def giveUp(self) -> None: ...

class Exchanging:
    """The module `adapters/exchange.mjs`."""

    def send(self, method: str, url: str, headers: str, body: object, timeout_ms: int) -> Sent: ...
    def exchange(
        self, method: str, url: str, headers: str, body: object, timeout_ms: int, at_once_bytes: int
    ) -> Exchange: ...

class CryptoKey: ...

class SubtleCrypto:
    def encrypt(self, algorithm: JsProxy, key: CryptoKey, data: JsProxy) -> Awaitable[ArrayBuffer]: ...
    def decrypt(self, algorithm: JsProxy, key: CryptoKey, data: JsProxy) -> Awaitable[ArrayBuffer]: ...
    def sign(self, algorithm: JsProxy, key: CryptoKey, data: JsProxy) -> Awaitable[ArrayBuffer]: ...
    def verify(self, algorithm: JsProxy, key: CryptoKey, signature: JsProxy, data: JsProxy) -> Awaitable[bool]: ...
    def importKey(
        self, format: str, key: JsProxy, algorithm: JsProxy | str, extractable: bool, usages: JsProxy
    ) -> Awaitable[CryptoKey]: ...

class Crypto:
    subtle: SubtleCrypto
    def getRandomValues(self, array: Uint8Array) -> Uint8Array: ...

crypto: Crypto

def setTimeout(work: object, delay_ms: int) -> object: ...
def clearTimeout(timer: object) -> None: ...
def fetch(url: str, options: JsProxy = ..., /, **init: Any) -> Awaitable[Response]: ...
