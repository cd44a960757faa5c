"""What KV holds for tool calls: read at once where that is possible, and kept in the isolate for a few seconds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from retain.gateway.credentials import credential_name
from retain.gateway.tool_config import tool_name_in_kv
from retain.ports import Clock, Kv

MAX_CHARACTERS: Final = 4 * 1_048_576
"""Most characters that are kept: those used least recently are dropped."""
REMEMBERED_KEYS: Final = 2_000
"""Of how many API keys it is remembered whose they were."""


Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class ToolEntries:
    """What KV has of a tenant's tool: its configuration, and its sealed credential. None for what it does not have."""

    tenant_id: str
    tool_name: str
    config: str | None
    sealed: str | None = field(repr=False)


class Entries:
    """Reads the entries of tool calls. One per isolate.

    An API key that was valid before is read again together with the tool's entries, in one call. Which entries these are
    follows from whose key it was then, and never from what a caller writes: an unknown key costs one read, whatever
    it names, and neither its answer nor the time of that depends on what a tenant has.

    kept_ms: for how long what KV answered is used without asking again, 0 for not at all. It bounds by how much longer than
    KV itself a revoked key, a replaced credential or an earlier configuration works. What is missing is never kept: a new
    key or tool works at once.
    """

    def __init__(self, kv: Kv, clock: Clock, kept_ms: int) -> None:
        self._kv = kv
        self._clock = clock
        self._kept_ms = kept_ms
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._kept: OrderedDict[tuple[str, ...], tuple[str | ToolEntries, int]] = OrderedDict()
        self._characters = 0

    async def key(self, name: str, tool_name: str | None) -> tuple[str | None, ToolEntries | None]:
        """Return the record of an API key, and the entries of the tool that it calls if they were read with it.

        name: of the key in KV. tool_name: None for a request that calls none. Raises: Unavailable.
        """
        kept = self._fresh((name,))
        if isinstance(kept, str):
            return kept, None
        owner = self._owners.get(name)
        if owner is None or tool_name is None or self._fresh((owner, tool_name)) is not None:
            return await self._kv.get(name), None
        names = (name, tool_name_in_kv(owner, tool_name), credential_name(owner, tool_name))
        record, config, sealed = await self._kv.get_many(names)
        return record, ToolEntries(owner, tool_name, config, sealed)

    def keep_key(self, name: str, record: str, tenant_id: str) -> None:
        """Keep the record of a valid key."""
        self._owners[name] = tenant_id
        self._owners.move_to_end(name)
        if len(self._owners) > REMEMBERED_KEYS:
            self._owners.popitem(last=False)
        self._keep((name,), record)

    async def tool(self, tenant_id: str, tool_name: str, read: ToolEntries | None) -> ToolEntries:
        """Return the entries of a tool. read: what was read of one before in this request. Raises: Unavailable."""
        if read is not None and (read.tenant_id, read.tool_name) == (tenant_id, tool_name):
            return read
        kept = self._fresh((tenant_id, tool_name))
        if isinstance(kept, ToolEntries):
            return kept
        names = (tool_name_in_kv(tenant_id, tool_name), credential_name(tenant_id, tool_name))
        return ToolEntries(tenant_id, tool_name, *await self._kv.get_many(names))

    def keep_tool(self, entries: ToolEntries) -> None:
        """Keep the entries of a tool that can be called with them."""
        self._keep((entries.tenant_id, entries.tool_name), entries)

    def _fresh(self, name: tuple[str, ...]) -> str | ToolEntries | None:
        kept = self._kept.get(name)
        return kept[0] if kept is not None and self._clock() < kept[1] else None

    def _keep(self, name: tuple[str, ...], value: str | ToolEntries) -> None:
        if not self._kept_ms or self._fresh(name) is not None:
            return
        self._drop(name)
        self._kept[name] = (value, self._clock() + self._kept_ms)
        self._characters += _size(value)
        while self._characters > MAX_CHARACTERS:
            self._drop(next(iter(self._kept)))

    def _drop(self, name: tuple[str, ...]) -> None:
        dropped = self._kept.pop(name, None)
        self._characters -= _size(dropped[0]) if dropped is not None else 0


def _size(value: str | ToolEntries) -> int:
    return len(value) if isinstance(value, str) else len(value.config or "") + len(value.sealed or "")


class ReadTexts(Generic[Read]):
    """What was read of texts from KV: those used least recently are dropped.

    most: characters of the texts that are kept. What a configuration is read as takes about six times as much memory.
    """

    def __init__(self, read: Callable[[str, bool], Read], most: int) -> None:
        self._read = read
        self._most = most
        self._kept: OrderedDict[tuple[str, bool], Read] = OrderedDict()
        self._characters = 0

    def of(self, text: str, *, allow_loopback: bool) -> Read:
        """Return what is read of a text. Raises: as `read`, each time."""
        key = (text, allow_loopback)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        self._kept[key] = found = self._read(text, allow_loopback)
        self._characters += len(text)
        while self._characters > self._most:
            (dropped, _), _ = self._kept.popitem(last=False)
            self._characters -= len(dropped)
        return found
