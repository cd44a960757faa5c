"""Erasing the data of the memory contracts' backends: conversations in KV, documents in D1 with their vectors."""

from __future__ import annotations

from typing import Any

from retain.contracts.stored.conversations import opened, tenant_prefix, words_of
from retain.contracts.stored.document_index import DocumentIndex
from retain.json_text import MAX_NESTING, read_json
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice, erase_keys
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term

DOCUMENTS = 500
_PAGE = "SELECT number FROM vector_documents WHERE tenant_id = {} ORDER BY number LIMIT {}"


async def erase_conversations(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of the conversations in KV: all of the tenant's, or those that name the term, each as a whole.

    Raises: also Misconfigured (code `item_unreadable`) for a sealed one that no key opens, unless the tenant is erased.
    """
    prefix = tenant_prefix(job.tenant_id)
    if job.receipt.kind == "tenant":
        return await erase_keys(stores, job, prefix)
    term = Term.of(job.request["subject"])

    async def named(key: str, value: str) -> bool:
        if term.in_text(key.removeprefix(prefix)):
            return True
        messages: Any = read_json(await opened(stores.sealer, key, value), levels=2 * MAX_NESTING)
        return any(term.in_json(words_of(message)) for message in messages)

    return await erase_keys(stores, job, prefix, named)


async def erase_documents(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of the tenant's documents, and finally their vectors."""
    page = _PAGE.format("?3", DOCUMENTS)
    if (await stores.sql.run(_PAGE.format("?", 1), job.tenant_id)).rows:
        await stores.sql.batch(
            [
                *job.moved(stores.clock(), {}),
                job.counted("d1.vector_documents", f"SELECT COUNT(*) FROM ({page})", job.tenant_id),
                (f"DELETE FROM vector_documents WHERE number IN ({_PAGE.format('?', DOCUMENTS)})", (job.tenant_id,)),
            ]
        )
        return Slice.MORE
    return await forget_vectors(stores, job)


async def forget_vectors(stores: Stores, job: ErasureJob) -> Slice:
    """Remove the vectors of deleted documents from the index; wait while an older write may be under way."""
    young = await DocumentIndex(stores.sql, stores.index, stores.clock).settle_removals(job.tenant_id)
    return Slice.WAIT if young else Slice.DONE
