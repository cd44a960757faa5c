"""KV and R2 as ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyodide.ffi import JsException, jsnull

from adapters.deadline import within
from adapters.failures import unavailable
from retain.limits.deadlines import KV_MS, OBJECTS_MS, object_write_ms
from retain.limits.storage import check_kv_key, check_kv_write, check_object_key, check_page, utf8_bytes
from retain.ports import KeyPage

if TYPE_CHECKING:
    from cloudflare_bindings import KvNamespace, R2Bucket


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
    """`Objects` on an R2 bucket."""

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
