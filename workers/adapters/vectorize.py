"""Vectorize as a port, and what stands in for it under the same name."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyodide.ffi import JsException, JsProxy, to_js

from adapters.deadline import within
from adapters.web import converted
from retain.json_text import Json
from retain.limits.deadlines import VECTOR_QUERY_MS, vector_write_ms
from retain.limits.vector_filter import FILTERABLE
from retain.limits.vectorize import (
    LAG_MS,
    MAX_DELETE_IDS,
    MAX_GET_IDS,
    check_entries,
    check_ids,
    check_query,
    delete_calls,
    platform_error,
)
from retain.ports import MetadataFilter, PropertyType, Vector, VectorEntry, VectorMatch

if TYPE_CHECKING:
    from cloudflare_bindings import VectorizeIndex

_log = logging.getLogger("retain.bindings")


class Vectorize:
    """`VectorIndex` on a Vectorize binding, or on the stand-in bound under its name.

    It calls the platform's object, not the SDK's wrapper, which inspects every number of every vector: two seconds
    for a batch of a thousand.
    """

    def __init__(self, binding: VectorizeIndex, declared: Mapping[str, PropertyType] | None = None) -> None:
        """declared: the properties with a metadata index beyond those of every deployment."""
        self._index = binding._binding
        self.filterable: Mapping[str, PropertyType] = {**FILTERABLE, **(declared or {})}
        self.lag_ms: int = LAG_MS
        self._dimensions: int | None = None

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        check_entries(entries, await self.dimensions())
        vectors = [
            {"id": e.id, "values": list(e.values), "namespace": e.namespace, "metadata": dict(e.metadata)}
            for e in entries
        ]
        return str(
            (await self._answer(self._index.upsert(converted(vectors)), vector_write_ms(len(entries))))["mutationId"]
        )

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        check_query(
            vector,
            await self.dimensions(),
            namespace=namespace,
            criteria=filter,
            top_k=top_k,
            with_metadata=with_metadata,
            filterable=self.filterable,
        )
        options: dict[str, Json] = {"topK": top_k, "namespace": namespace}
        options["returnMetadata"] = "all" if with_metadata else "none"
        if filter:  # the platform refuses an empty filter
            options["filter"] = {
                name: dict(value) if isinstance(value, Mapping) else value for name, value in filter.items()
            }
        found = await self._answer(self._index.query(converted(list(vector)), converted(options)))
        return [VectorMatch(m["id"], float(m["score"]), m.get("metadata") or {}) for m in found["matches"]]

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        check_ids(ids, MAX_GET_IDS)
        found = await self._answer(self._index.getByIds(to_js(list(ids))))
        return [
            VectorEntry(v["id"], list(v["values"]), v.get("namespace") or "", v.get("metadata") or {}) for v in found
        ]

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        check_ids(ids, MAX_DELETE_IDS)
        answers = [
            await self._answer(self._index.deleteByIds(to_js(some)), vector_write_ms(len(some)))
            for some in delete_calls(ids)
        ]
        return str(answers[-1]["mutationId"])

    async def dimensions(self) -> int:
        if self._dimensions is None:  # they never change
            self._dimensions = int((await self._answer(self._index.describe()))["dimensions"])
        return self._dimensions

    async def count(self) -> int:
        return int((await self._answer(self._index.describe()))["vectorCount"])

    async def _answer(self, call: Awaitable[JsProxy], limit_ms: int = VECTOR_QUERY_MS) -> Any:
        try:
            async with within(limit_ms, "the vector index", "vector_index_unavailable"):
                return (await call).to_py()
        except JsException as error:
            _log.warning("Vectorize failed", extra={"cause": str(error)})
            raise platform_error(str(error)) from error
