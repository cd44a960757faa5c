"""The calls of a Vectorize binding over HTTP, and the VectorIndex port on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

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
from retain.ports import MetadataFilter, Vector, VectorEntry, VectorMatch


class Refused(Exception):
    """The error that the binding threw, with its original text."""


class HttpBinding:
    """A Vectorize binding, called through gateway.js."""

    def __init__(self, client: httpx.AsyncClient, name: str) -> None:
        self._client = client
        self._name = name

    async def call(self, method: str, *arguments: object) -> Any:
        """Call the method; return its result as JSON.

        Raises: Refused.
        """
        response = await self._client.post(f"{self._name}/{method}", json=arguments)
        answer = response.json()
        if response.is_error:
            raise Refused(answer["error"])
        return answer["result"]


class HttpVectorIndex:
    """Implements `retain.ports.VectorIndex` as the platform's adapter does: checks, then the binding's calls."""

    def __init__(self, binding: HttpBinding, dimensions: int) -> None:
        self._binding = binding
        self._dimensions = dimensions
        self.filterable = FILTERABLE
        self.lag_ms = LAG_MS

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Write the vectors."""
        check_entries(entries, self._dimensions)
        vectors = [
            {"id": one.id, "values": list(one.values), "namespace": one.namespace, "metadata": dict(one.metadata)}
            for one in entries
        ]
        return str((await self._call("upsert", vectors))["mutationId"])

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002 -- the port's name
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        """Return the nearest vectors."""
        check_query(
            vector, self._dimensions, namespace=namespace, criteria=filter, top_k=top_k, with_metadata=with_metadata
        )
        options = {"namespace": namespace, "topK": top_k, "returnMetadata": "all" if with_metadata else "none"}
        if filter:
            options["filter"] = filter
        answer = await self._call("query", list(vector), options)
        assert answer["count"] == len(answer["matches"])
        return [VectorMatch(one["id"], one["score"], one.get("metadata", {})) for one in answer["matches"]]

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        """Return the vectors of those ids that exist."""
        check_ids(ids, MAX_GET_IDS)
        found = await self._call("getByIds", list(ids))
        return [VectorEntry(one["id"], one["values"], one["namespace"], one.get("metadata", {})) for one in found]

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        """Remove the vectors."""
        check_ids(ids, MAX_DELETE_IDS)
        answers = [await self._call("deleteByIds", some) for some in delete_calls(ids)]
        return str(answers[-1]["mutationId"])

    async def dimensions(self) -> int:
        """Return the number of dimensions of the index."""
        return int((await self._call("describe"))["dimensions"])

    async def count(self) -> int:
        """Return the number of vectors of the index."""
        return int((await self._call("describe"))["vectorCount"])

    async def _call(self, method: str, *arguments: object) -> Any:
        try:
            return await self._binding.call(method, *arguments)
        except Refused as error:
            raise platform_error(str(error)) from error
