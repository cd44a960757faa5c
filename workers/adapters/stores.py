"""KV and R2 as ports."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import js
from pyodide.ffi import JsException, jsnull, to_js

from adapters.deadline import within
from adapters.failures import unavailable
from retain.errors import RetainError
from retain.limits.deadlines import KV_MS, OBJECT_STREAM_MS, OBJECTS_MS, object_write_ms
from retain.limits.storage import (
    check_kv_key,
    check_kv_keys,
    check_kv_write,
    check_object_key,
    check_page,
    utf8_bytes,
    wrong_size,
)
from retain.ports import KeyPage

if TYPE_CHECKING:
    from cloudflare_bindings import KvNamespace, R2Bucket


NOTICE_S = 1.0
"""How long a stream whose object was refused may take to say why."""


class WorkersKv:
    """`Kv` on Workers KV."""

    def __init__(self, binding: KvNamespace) -> None:
        self._kv = binding
        self._direct = binding._binding

    async def get(self, key: str) -> str | None:
        check_kv_key(key)
        try:
            async with within(KV_MS, "KV", "kv_unavailable"):
                value = await self._direct.get(key)  # not the SDK's wrapper: the proxy does this three times per call
        except JsException as error:
            raise unavailable("KV", error, "kv_unavailable") from error
        return None if value is jsnull else str(value)

    async def get_many(self, keys: Sequence[str]) -> builtins.list[str | None]:
        names = check_kv_keys(keys)
        if not names:
            return []
        try:
            async with within(KV_MS, "KV", "kv_unavailable"):
                found = await self._direct.get(to_js(names))
        except JsException as error:
            raise unavailable("KV", error, "kv_unavailable") from error
        return [None if (value := found.get(name)) is jsnull or value is None else str(value) for name in names]

    async def put(self, key: str, value: str, *, ttl_s: int | None = None) -> None:
        check_kv_write(key, value, ttl_s)
        try:
            async with within(KV_MS, "KV", "kv_unavailable"):
                await (self._kv.put(key, value) if ttl_s is None else self._kv.put(key, value, expirationTtl=ttl_s))
        except JsException as error:
            raise unavailable("KV", error, "kv_unavailable") from error

    async def delete(self, key: str) -> None:
        check_kv_key(key)
        try:
            async with within(KV_MS, "KV", "kv_unavailable"):
                await self._kv.delete(key)
        except JsException as error:
            raise unavailable("KV", error, "kv_unavailable") from error

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        check_page(limit)
        utf8_bytes(prefix)
        try:
            async with within(KV_MS, "KV", "kv_unavailable"):
                page = await self._kv.list(prefix=prefix, limit=limit, **({} if cursor is None else {"cursor": cursor}))
        except JsException as error:
            raise unavailable("KV", error, "kv_unavailable") from error
        return KeyPage([key["name"] for key in page["keys"]], None if page["list_complete"] else page["cursor"])


class R2:
    """`StreamedObjects` on an R2 bucket."""

    def __init__(self, binding: R2Bucket) -> None:
        self._bucket = binding

    async def get(self, key: str) -> bytes | None:
        check_object_key(key)
        try:
            async with within(OBJECTS_MS, "R2", "r2_unavailable"):
                found = await self._bucket.get(key)
                return None if found is None else bytes(await found.arrayBuffer())
        except JsException as error:
            raise unavailable("R2", error, "r2_unavailable") from error

    async def put(self, key: str, value: bytes, *, content_type: str = "application/octet-stream") -> None:
        check_object_key(key)
        try:
            async with within(object_write_ms(len(value)), "R2", "r2_unavailable"):
                await self._bucket.put(key, value, httpMetadata={"contentType": content_type})
        except JsException as error:
            raise unavailable("R2", error, "r2_unavailable") from error

    async def add(self, key: str, value: bytes, *, content_type: str = "application/octet-stream") -> bool:
        check_object_key(key)
        metadata = {"contentType": content_type}
        try:
            async with within(object_write_ms(len(value)), "R2", "r2_unavailable"):
                # "*" matches any object: R2 returns null when one exists.
                put = await self._bucket.put(key, value, httpMetadata=metadata, onlyIf={"etagDoesNotMatch": "*"})
        except JsException as error:
            raise unavailable("R2", error, "r2_unavailable") from error
        return put is not None and put is not jsnull

    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], *, size_bytes: int, content_type: str = "application/octet-stream"
    ) -> None:
        check_object_key(key)
        # R2 takes a stream whose length is known before it begins.
        # Source: https://developers.cloudflare.com/r2/api/workers/workers-api-reference/#bucket-method-definitions
        pipe = js.FixedLengthStream.new(size_bytes)
        feeding = asyncio.ensure_future(_feed(pipe.writable.getWriter(), pieces, size_bytes))
        try:
            async with within(OBJECT_STREAM_MS, "R2", "r2_unavailable"):
                await self._bucket.put(key, pipe.readable, httpMetadata={"contentType": content_type})
                await feeding
        except JsException as error:
            await asyncio.wait((feeding,), timeout=NOTICE_S)
            why = feeding.exception() if feeding.done() else None
            if isinstance(why, RetainError):
                raise why from None
            raise unavailable("R2", error, "r2_unavailable") from error
        finally:
            feeding.cancel()

    async def stream(self, key: str) -> AsyncIterator[bytes] | None:
        check_object_key(key)
        try:
            async with within(OBJECTS_MS, "R2", "r2_unavailable"):
                found = await self._bucket.get(key)
        except JsException as error:
            raise unavailable("R2", error, "r2_unavailable") from error
        return None if found is None else _pieces(found.body.getReader())

    async def delete(self, key: str) -> None:
        check_object_key(key)
        try:
            async with within(OBJECTS_MS, "R2", "r2_unavailable"):
                await self._bucket.delete(key)
        except JsException as error:
            raise unavailable("R2", error, "r2_unavailable") from error

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        check_page(limit)
        utf8_bytes(prefix)
        try:
            async with within(OBJECTS_MS, "R2", "r2_unavailable"):
                page = await self._bucket.list(
                    prefix=prefix, limit=limit, **({} if cursor is None else {"cursor": cursor})
                )
        except JsException as error:
            raise unavailable("R2", error, "r2_unavailable") from error
        return KeyPage([found.key for found in page["objects"]], page["cursor"] if page["truncated"] else None)


async def _feed(writer: js.StreamWriter, pieces: AsyncIterator[bytes], size_bytes: int) -> None:
    """Write the pieces; if they are not as announced, or raise, end the stream so that nothing is stored."""
    written = 0
    try:
        async for piece in pieces:
            written += len(piece)
            if written > size_bytes:
                raise wrong_size(size_bytes)
            await writer.write(to_js(piece))
        if written != size_bytes:
            raise wrong_size(size_bytes)
    except RetainError as error:
        await writer.abort(error.code)
        raise
    await writer.close()


async def _pieces(reader: js.StreamReader) -> AsyncIterator[bytes]:
    try:
        while True:
            async with within(OBJECTS_MS, "R2", "r2_unavailable"):
                piece = await reader.read()
            if piece.done:
                return
            yield piece.value.to_bytes()
    except JsException as error:
        raise unavailable("R2", error, "r2_unavailable") from error
    finally:
        reader.releaseLock()
