"""The rows of documents in D1 or a SQLite file, and exact search over them. Any index is derived from them."""

from __future__ import annotations

import heapq
import json
from array import array
from collections.abc import AsyncIterator, Sequence

from retain.contracts.documents import PreparedDocument, check_model, prepared, similarity
from retain.contracts.opaque import chunked
from retain.contracts.stored.document_index import NEVER_MS
from retain.contracts.stored.packing import packed, unpacked
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.errors import ConstraintViolated
from retain.json_text import read_own_json
from retain.namespace import Namespace
from retain.ports import Row, Sql, Statement

PAGE = 1000
"""Rows per query: 1.4 MB at 256 dimensions."""
# Several versions of a document may be on their way to the index: `version` distinguishes them, and each has its own
# vector there (`stored.document_index`).
_PUT = f"""
INSERT INTO vector_documents (namespace_key, document_id, tenant_id, document, embedding, model, indexed)
SELECT ?1, value ->> '$[0]', ?2, value ->> '$[1]', value ->> '$[2]', ?5, ?3 FROM json_each(?4) WHERE true
ON CONFLICT (namespace_key, document_id) DO UPDATE SET document = excluded.document, embedding = excluded.embedding,
  model = excluded.model, indexed = excluded.indexed, version = version + 1, sent_at_ms = {NEVER_MS}
"""
# Documents that were stored before models had names are of the model whose vectors are stored next to them.
_NAME = "UPDATE vector_documents SET model = ? WHERE namespace_key = ? AND model = ''"
_OTHER_MODEL = "SELECT MAX(model) AS model FROM vector_documents WHERE namespace_key = ? AND model NOT IN ('', ?)"
_DELETE = """
DELETE FROM vector_documents WHERE namespace_key = ? AND document_id IN (SELECT value FROM json_each(?))
"""
_SCAN = """
SELECT number, document_id, embedding, model FROM vector_documents
WHERE namespace_key = ? AND document_id > ? ORDER BY document_id LIMIT ?
"""
# The plus signs keep SQLite from scanning the whole namespace in the order of the ids.
_SCAN_FRESH = """
SELECT number, document_id, embedding, model FROM vector_documents
WHERE namespace_key = ? AND sent_at_ms > ? AND +document_id > ? ORDER BY +document_id LIMIT ?
"""
_READ = "SELECT * FROM vector_documents WHERE namespace_key = ? AND number IN (SELECT value FROM json_each(?))"
_AFTER = """
SELECT * FROM vector_documents WHERE namespace_key = ? AND document_id > ? ORDER BY document_id LIMIT ?
"""


def storing(namespace: Namespace, documents: Sequence[PreparedDocument], *, indexed: bool) -> list[Statement]:
    """Return the statements that store documents of one model, for one transaction. indexed: an index must get them too."""
    if not documents:
        return []
    key, model = str(namespace), documents[0].model
    rows = [json.dumps([one.id, one.text, packed(one.embedding)]) for one in documents]
    puts: list[Statement] = [
        (_PUT, (key, namespace.tenant_id, int(indexed), chunk, model)) for _, chunk in chunked(rows)
    ]
    return [(_NAME, (model, key)), *puts]


def deleting(namespace: Namespace, ids: Sequence[str]) -> list[Statement]:
    """Return the statements that remove the documents."""
    return [(_DELETE, (str(namespace), chunk)) for _, chunk in chunked(list(ids))]


class DocumentRows:
    """The documents of one namespace, and of one embedding model."""

    def __init__(self, sql: Sql, namespace: Namespace, dimensions: int, model: str) -> None:
        self._sql = sql
        self._namespace = namespace
        self._key = str(namespace)
        self._dimensions = dimensions
        self._model = model

    async def store(self, documents: Sequence[VectorDocument], *, indexed: bool) -> None:
        """Store the documents in one transaction. Raises: InvalidInput; LimitExceeded; Misconfigured; Conflict."""
        kept = prepared(documents, self._dimensions, self._model)
        try:
            await self._sql.batch(storing(self._namespace, kept, indexed=indexed))
        except ConstraintViolated:
            [row] = (await self._sql.run(_OTHER_MODEL, self._key, self._model)).rows
            check_model(row["model"] or "", self._model)
            raise

    async def nearest(self, query: Sequence[float], top_k: int, *, since_ms: int | None = None) -> list[int]:
        """Return the numbers of the `top_k` nearest rows, by reading every row.

        since_ms: read only rows that were not sent to the index before then.
        """
        kept: list[tuple[float, str, int]] = []
        async for number, id_, embedding in self._scan(since_ms):
            kept.append((-similarity(query, embedding), id_, number))
            if len(kept) >= top_k + PAGE:
                kept = heapq.nsmallest(top_k, kept)
        return [number for _, _, number in heapq.nsmallest(top_k, kept)]

    async def read(self, query: Sequence[float], numbers: Sequence[int]) -> list[RetrievedDocument]:
        """Return the current documents of these rows, with their scores."""
        rows = (await self._sql.run(_READ, self._key, json.dumps(list(numbers)))).rows
        return [self._found(row, query) for row in rows]

    async def page(self, after: str, limit: int) -> list[VectorDocument]:
        """Return up to `limit` documents after an id, ordered by id, with normalised embeddings."""
        rows = (await self._sql.run(_AFTER, self._key, after, limit)).rows
        return [
            VectorDocument(row["document_id"], content, unpacked(row["embedding"], self._dimensions).tolist(), metadata)
            for row in rows
            for content, metadata in [read_own_json(row["document"])]
        ]

    def _found(self, row: Row, query: Sequence[float]) -> RetrievedDocument:
        score = similarity(query, self._embedding(row))
        content, metadata = read_own_json(row["document"])
        return RetrievedDocument(row["document_id"], content, score, metadata)

    def _embedding(self, row: Row) -> array[float]:
        check_model(row["model"], self._model)
        return unpacked(row["embedding"], self._dimensions)

    async def _scan(self, since_ms: int | None) -> AsyncIterator[tuple[int, str, array[float]]]:
        after = ""
        while True:
            sql, more = (_SCAN, ()) if since_ms is None else (_SCAN_FRESH, (since_ms,))
            rows = (await self._sql.run(sql, self._key, *more, after, PAGE)).rows
            for row in rows:
                yield int(row["number"]), row["document_id"], self._embedding(row)
            if len(rows) < PAGE:
                return
            after = rows[-1]["document_id"]
