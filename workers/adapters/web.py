"""HTTP, cryptography and time zones of the web platform as ports."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from typing import TypeVar

import js
from pyodide.ffi import JsException, JsProxy, to_js

from retain import errors
from retain.http import Response, response_too_large
from retain.limits.room import SMALL_BYTES, arriving
from retain.ports import MAX_RESPONSE_BYTES, MAX_STREAM_BYTES, HttpResponse, StreamedResponse, Until
from workers import import_from_javascript, wait_until

_T = TypeVar("_T")
_written = json.JSONEncoder(separators=(",", ":")).encode
_log = logging.getLogger("retain.web")


class Headers(Mapping[str, str]):
    """The headers of a request or response, read one by one: converting all of them costs more than the proxy's own work."""

    def __init__(self, headers: js.Headers) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = self._headers.get(name)
        if not isinstance(value, str):
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter([str(name) for name in self._headers.keys()])  # noqa: SIM118 -- the object itself yields pairs

    def __len__(self) -> int:
        return len(list(iter(self)))


_TRANSPORT_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class ReceivedHeaders(Headers):
    """A response's headers without those that describe the encoded body, which has been decoded."""

    def __getitem__(self, name: str) -> str:
        if name in _TRANSPORT_HEADERS:
            raise KeyError(name)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name not in _TRANSPORT_HEADERS)


class HeldBuffer:
    """Implements `HeldBody` on an ArrayBuffer."""

    __slots__ = ("_size", "buffer")

    def __init__(self, buffer: js.ArrayBuffer, size: int) -> None:
        self.buffer = buffer
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self) -> bytes:
        return bytes(self.buffer.to_bytes())


def platform_response(answer: Response, request_id: str, more: Mapping[str, str]) -> js.Response:
    """Return the platform's response. more: headers that do not depend on the answer.

    The SDK's wrapper would take longer than the proxy's own work, and so would a call for each header.
    """
    headers = {**answer.headers, **more, "x-request-id": request_id}
    body: object = to_js(answer.body) if isinstance(answer.body, bytes) else answer.body
    if isinstance(answer.held, HeldBuffer):
        body = answer.held.buffer
    if answer.status == 204:
        body = None
    pieces = answer.content or answer.stream
    if pieces is not None:
        body = _streamed(pieces)
    return js.Response.new(body, js.JSON.parse(_written({"status": answer.status, "headers": headers})))


def _streamed(pieces: AsyncIterator[str] | AsyncIterator[bytes]) -> js.ReadableStream:
    """Return a readable stream of the pieces. It is fed after the response was returned.

    A client that disconnects ends the stream, which is not an error.
    """
    pipe = js.TransformStream.new()
    writer = pipe.writable.getWriter()
    encoder = js.TextEncoder.new()

    async def feed() -> None:
        try:
            async for piece in pieces:
                await writer.write(encoder.encode(piece) if isinstance(piece, str) else to_js(piece))
            await writer.close()
        except JsException:
            _log.info("a client went away from a stream")
        except errors.RetainError as error:
            _log.warning("a stream broke off", extra={"code": error.code})
            await writer.abort(error.code)

    wait_until(asyncio.ensure_future(feed()))
    return pipe.readable


async def fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: str | bytes | None,
    timeout_ms: int,
    limit_bytes: int = MAX_RESPONSE_BYTES,
    until: Until | None = None,
) -> HttpResponse:
    """Send one request and receive the whole answer, which the platform holds: the port `Fetch`.

    A task that is cancelled aborts the request.
    """
    exchange = _exchanging().exchange
    given = (method, url, _written(dict(headers)), _sendable(body), timeout_ms, min(limit_bytes, SMALL_BYTES))
    sent = status = None
    try:
        sent = exchange(*given)
        answer = await sent.answer
        response, size = answer.response, answer.size
        status = int(response.status)
        content = await _bounded(response, limit_bytes, until) if size < 0 else HeldBuffer(answer.content, size)
    except JsException as error:
        raise _failed(url, error, status) from error
    except asyncio.CancelledError:
        if sent is not None:
            sent.giveUp()
        raise
    return HttpResponse(status, ReceivedHeaders(response.headers), content)


@functools.cache
def _exchanging() -> js.Exchanging:
    """Return the module of JavaScript that sends requests. It can only be loaded while a request is answered."""
    module: js.Exchanging = import_from_javascript("adapters/exchange.mjs")
    return module


def _sendable(body: str | bytes | None) -> object:
    return to_js(body) if isinstance(body, bytes) else body


async def _bounded(response: js.Response, limit_bytes: int, until: Until | None) -> bytes | HeldBuffer:
    """Return a response's decoded body, `until` it is complete.

    Raises: UpstreamFailed (code `response_too_large`), after at most a piece more.
    """
    length = response.headers.get("content-length")
    encoded = response.headers.get("content-encoding")
    if isinstance(length, str) and length.isdecimal() and not isinstance(encoded, str):
        size = int(length)
        if size <= limit_bytes:
            await arriving(size)
            # The platform gives no more bytes than were announced.
            return HeldBuffer(await response.arrayBuffer(), size)
        if response.body:
            await response.body.cancel()
        raise response_too_large(limit_bytes, upstream_status=int(response.status))
    if not response.body:
        return b""
    reader, pieces, received = response.body.getReader(), [], 0
    while not (piece := await reader.read()).done:
        if received <= SMALL_BYTES < received + int(piece.value.byteLength):
            await arriving(limit_bytes)
        received += int(piece.value.byteLength)
        if received > limit_bytes:
            await reader.cancel()
            raise response_too_large(limit_bytes, upstream_status=int(response.status))
        pieces.append(piece.value.to_bytes())
        if until is not None and until(pieces[-1]):
            await reader.cancel()
            break
    return b"".join(pieces)


@contextlib.asynccontextmanager
async def fetch_stream(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: str | bytes | None,
    silence_ms: int,
    timeout_ms: int,
    limit_bytes: int = MAX_STREAM_BYTES,
) -> AsyncIterator[StreamedResponse]:
    """Send one request and pass on the answer as it arrives: the port `FetchStream`."""
    sent = _exchanging().send(method, url, _written(dict(headers)), _sendable(body), timeout_ms)
    try:
        try:
            response = await _soon(sent.answer, silence_ms)
        except JsException as error:
            raise _failed(url, error) from error
        reader = response.body.getReader() if response.body else None
        yield StreamedResponse(
            int(response.status), ReceivedHeaders(response.headers), stream_chunks(reader, silence_ms, limit_bytes)
        )
    finally:
        sent.giveUp()


async def stream_chunks(
    reader: js.StreamReader | None, silence_ms: int, limit_bytes: int = MAX_STREAM_BYTES
) -> AsyncIterator[bytes]:
    """Yield what the reader of a ReadableStream reads, nothing without one.

    Raises: Unavailable (code `upstream_timeout`, `upstream_unreachable`) when the stream breaks off; UpstreamFailed
        (code `response_too_large`) when it holds more than `limit_bytes`.
    """
    received = 0
    while reader is not None:
        try:
            piece = await _soon(reader.read(), silence_ms)
        except JsException as error:
            raise _broken(error) from error
        if piece.done:
            return
        received += int(piece.value.byteLength)
        if received > limit_bytes:
            raise response_too_large(limit_bytes)
        content = piece.value.to_bytes()
        if content:
            yield content


async def _soon(promise: Awaitable[_T], silence_ms: int) -> _T:
    try:
        async with asyncio.timeout(silence_ms / 1000):
            return await promise
    except TimeoutError as error:
        raise errors.Unavailable("the server did not answer in time", code="upstream_timeout") from error


def _failed(url: str, error: JsException, answered: int | None = None) -> errors.RetainError:
    if not url.startswith(("http://", "https://")) or not js.URL.canParse(url):
        return errors.InvalidInput("the address is not a valid HTTP address", code="invalid_url")
    return _broken(error, answered)


def _broken(error: JsException, answered: int | None = None) -> errors.Unavailable:
    """Return the error of a request that failed. answered: with which status its answer began, before it broke off."""
    status: int | None = getattr(error, "answered", answered)
    details = {} if status is None else {"upstream_status": int(status)}
    if getattr(error, "name", "") == "TimeoutError":
        return errors.Unavailable("the server did not answer in time", code="upstream_timeout", **details)
    return errors.Unavailable("the server could not be reached", code="upstream_unreachable", **details)


_OFFSET = re.compile(r"GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?")


def time_zones(zone: str, at_ms: int) -> int:
    """Return how many seconds the zone is ahead of UTC: the port `TimeZones`. Python in a Worker has no database of them."""
    try:
        shown = js.Intl.DateTimeFormat.new("en-US", timeZone=zone, timeZoneName="longOffset")
    except JsException as error:
        raise errors.InvalidInput(f"there is no time zone {zone}", code="unknown_time_zone") from error
    parts = _OFFSET.search(shown.format(at_ms))
    if parts is None:
        raise errors.RetainError("the platform shows the offset of a time zone in another form")
    sign, *numbers = parts.groups("0")
    hours, minutes, seconds = map(int, numbers)
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if sign == "-" else 1)


_AES_KEY_BYTES = 32
_ES256 = {"name": "ECDSA", "namedCurve": "P-256", "hash": "SHA-256"}


class WebCrypto:
    """`Crypto` on Web Crypto."""

    async def encrypt(self, key: bytes, plaintext: bytes, associated: bytes) -> bytes:
        nonce = js.crypto.getRandomValues(js.Uint8Array.new(12))
        imported = await self._aes_key(key, "encrypt")
        sealed = await js.crypto.subtle.encrypt(_aes(nonce, associated), imported, to_js(plaintext))
        return bytes(nonce.to_bytes() + sealed.to_bytes())

    async def decrypt(self, key: bytes, sealed: bytes, associated: bytes) -> bytes:
        imported = await self._aes_key(key, "decrypt")
        try:
            plain = await js.crypto.subtle.decrypt(_aes(to_js(sealed[:12]), associated), imported, to_js(sealed[12:]))
        except JsException as error:
            raise errors.Forbidden("the sealed value does not fit its key", code="decryption_failed") from error
        return bytes(plain.to_bytes())

    async def verify_rs256(self, public_key: Mapping[str, str], message: bytes, signature: bytes) -> bool:
        algorithm = converted({"name": "RSASSA-PKCS1-v1_5", "hash": "SHA-256"})
        if not (public_key.get("n") and public_key.get("e")):
            raise _unusable_jwk()
        jwk = converted({"kty": "RSA", "n": public_key["n"], "e": public_key["e"], "alg": "RS256"})
        try:
            key = await js.crypto.subtle.importKey("jwk", jwk, algorithm, False, to_js(["verify"]))
        except JsException as error:
            raise _unusable_jwk() from error
        return bool(await js.crypto.subtle.verify(algorithm, key, to_js(signature), to_js(message)))

    async def sign_es256(self, private_key: Mapping[str, str], message: bytes) -> bytes:
        key = await _es256_key(private_key, "sign")
        return bytes((await js.crypto.subtle.sign(converted(_ES256), key, to_js(message))).to_bytes())

    async def verify_es256(self, public_key: Mapping[str, str], message: bytes, signature: bytes) -> bool:
        key = await _es256_key(public_key, "verify")
        return bool(await js.crypto.subtle.verify(converted(_ES256), key, to_js(signature), to_js(message)))

    async def _aes_key(self, key: bytes, use: str) -> js.CryptoKey:
        if len(key) != _AES_KEY_BYTES:  # a shorter key would silently select a weaker cipher
            raise errors.Misconfigured(
                f"the encryption key must have {_AES_KEY_BYTES} bytes", code="invalid_encryption_key"
            )
        return await js.crypto.subtle.importKey("raw", to_js(key), "AES-GCM", False, to_js([use]))


async def _es256_key(jwk: Mapping[str, str], use: str) -> js.CryptoKey:
    """Return a key for ES256. Only the coordinates, and for signing the private number, are passed on."""
    names = ("x", "y", "d") if use == "sign" else ("x", "y")
    if not all(jwk.get(name) for name in names):
        raise _unusable_jwk()
    wanted = converted({"kty": "EC", "crv": "P-256", **{name: jwk[name] for name in names}})
    try:
        return await js.crypto.subtle.importKey("jwk", wanted, converted(_ES256), False, to_js([use]))
    except JsException as error:
        raise _unusable_jwk() from error


def _unusable_jwk() -> errors.InvalidInput:
    return errors.InvalidInput("the JWK holds no usable key", code="invalid_public_key")


def converted(value: object) -> JsProxy:
    """Return a Python value as a JavaScript value; mappings become plain objects."""
    return to_js(value, dict_converter=js.Object.fromEntries)


def _aes(nonce: JsProxy, associated: bytes) -> JsProxy:
    return converted({"name": "AES-GCM", "iv": nonce, "additionalData": to_js(associated)})
