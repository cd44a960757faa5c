"""The stores of a tenant through its one writer, which is another object."""

from __future__ import annotations

from typing import cast

from retain.json_text import JsonObject
from retain.memory.writing.calls import StoreCall, StoreResult, Writer
from retain.ports import TenantWriters


class RemoteWriter:
    """`Writer` that asks the tenant's writer."""

    def __init__(self, writers: TenantWriters) -> None:
        self._writers = writers

    async def store(self, call: StoreCall) -> list[StoreResult]:
        """Store the contents, as `Writer.store`. Raises also: Unavailable (code `writer_unavailable`)."""
        answer = await self._writers.call(call.scope.tenant_id, "store", call.to_json())
        return [StoreResult.from_json(result) for result in cast("list[JsonObject]", answer["results"])]


async def answered(writer: Writer, request: JsonObject) -> JsonObject:
    """Store what `RemoteWriter.store` sent; return what it reads. Raises: as `Writer.store`."""
    return {"results": [result.to_json() for result in await writer.store(StoreCall.from_json(request))]}
