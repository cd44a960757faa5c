"""A store in a dictionary under the layer of any tier, and what watches it in tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from retain.items.rekeying.compatible import PROBE_EVERY, ReadOutcome
from retain.items.rekeying.flags import Namespacing, namespacing
from retain.items.rekeying.layers import LayeredCold, LayeredHot, LayeredWarm
from retain.settings import NamespaceSettings

KEY = "crm:acme:s1:cart:active"
FIRST = "acme:s1:cart:active"
SECOND = "agent:s1:active"
PATTERNS = json.dumps(
    [
        {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "crm"},
        {"template": "agent:{sessionId}:{entityId}", "service": "crm", "tenantId": "acme", "memoryKind": "cart"},
    ]
)
TIERS = ("hot", "warm", "cold")


def flags(write_canonical: bool, compat_read: bool) -> Namespacing:
    """Return the two legacy patterns under these flags."""
    return namespacing(NamespaceSettings(write_canonical, compat_read, PATTERNS))


class DictStore:
    """Implements the protocols of all three tiers, and can add a value only where there is none."""

    def __init__(self, **values: str) -> None:
        self.values: dict[str, str] = dict(values)

    async def read(self, key: str) -> str | None:
        return self.values.get(key)

    async def upsert(self, key: str, value: str) -> None:
        self.values[key] = value

    async def delete(self, key: str) -> None:
        self.values.pop(key, None)

    async def add(self, key: str, value: str) -> bool:
        if key in self.values:
            return False
        self.values[key] = value
        return True

    async def get(self, key: str) -> str | None:
        return await self.read(key)

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        await self.upsert(key, value)

    async def download_text(self, key: str) -> str | None:
        return await self.read(key)

    async def upload_text(self, key: str, value: str) -> None:
        await self.upsert(key, value)


class Watched:
    """Implements `Watch`: counts, and permits copies unless set otherwise."""

    def __init__(self, permitted: bool = True) -> None:
        self.permitted = permitted
        self.counts: Counter[ReadOutcome] = Counter()
        self.copies: Counter[bool] = Counter()
        self.misses = 0

    def found(self, tier: str, where: ReadOutcome) -> None:
        self.counts[where] += 1

    def repaired(self, tier: str, done: bool) -> None:
        self.copies[done] += 1

    def probes(self, tier: str) -> bool:
        self.misses += 1
        return self.misses % PROBE_EVERY == 0

    async def may_repair(self) -> bool:
        return self.permitted


class Layer(Protocol):
    """Any of the three layers, with the same method names."""

    async def read(self, key: str) -> str | None: ...
    async def upsert(self, key: str, value: str) -> None: ...
    async def delete(self, key: str) -> None: ...


class _Hot:
    def __init__(self, inner: LayeredHot) -> None:
        self._inner = inner
        self.read, self.delete = inner.get, inner.delete

    async def upsert(self, key: str, value: str) -> None:
        await self._inner.set(key, value, ttl=600)


class _Cold:
    def __init__(self, inner: LayeredCold) -> None:
        self.read, self.upsert, self.delete = inner.download_text, inner.upload_text, inner.delete


def layer(tier: str, store: DictStore, namespaces: Namespacing, watch: Watched, *, adds: bool = True) -> Layer:
    """Return the tier's layer over the store."""
    add = store.add if adds else None
    if tier == "hot":
        return _Hot(LayeredHot(store, namespaces, watch, add))
    if tier == "cold":
        return _Cold(LayeredCold(store, namespaces, watch, add))
    return LayeredWarm(store, namespaces, watch, add)


def store_of(values: Mapping[str, str]) -> DictStore:
    """Return a store with these values."""
    return DictStore(**values)
