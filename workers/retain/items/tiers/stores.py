"""The hot and the cold tier on the ports: KV and R2 on the platform, SQLite on the host."""

from __future__ import annotations

from retain.errors import InvalidInput
from retain.items.tiers.protocols import HOT_TTL_S
from retain.ports import Kv, Objects


class KvHot:
    """Implements `HotMemory` on the port `Kv`.

    Reads may lag writes by 60 seconds; misses are cached as well.
    Source: https://developers.cloudflare.com/kv/concepts/how-kv-works/
    """

    def __init__(self, kv: Kv) -> None:
        self._kv = kv

    async def get(self, key: str) -> str | None:
        """See the protocol."""
        return await self._kv.get(key)

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        """See the protocol. KV keeps a key for at least a minute: a shorter ttl is refused."""
        await self._kv.put(key, value, ttl_s=HOT_TTL_S if ttl is None else ttl)

    async def delete(self, key: str) -> None:
        """See the protocol."""
        await self._kv.delete(key)


class ObjectsCold:
    """Implements `ColdMemory` on the port `Objects`. Values are stored as UTF-8."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def download_text(self, key: str) -> str | None:
        """See the protocol. Raises: InvalidInput (code `unsupported_value`) for an object that is not text."""
        content = await self._objects.get(key)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput("the object is not text", code="unsupported_value") from error

    async def upload_text(self, key: str, value: str) -> None:
        """See the protocol."""
        try:
            content = value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput("the text is not valid Unicode", code="unsupported_value") from error
        await self._objects.put(key, content, content_type="text/plain; charset=utf-8")

    async def delete(self, key: str) -> None:
        """See the protocol."""
        await self._objects.delete(key)
