"""PII that lies unsealed in the warm tier: copied there by version 0.1.0, written by another program, or declared only now.

The daily work searches the values of the items that it examines and seals those with PII in place, under legacy keys too.
The version stays, so readers notice nothing. Without a key such values are reported each time they are examined.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from retain.errors import Misconfigured, RetainError
from retain.items.rekeying.flags import Namespacing
from retain.ports import Row, Sql, Statement
from retain.sealing.pii import FIELDS, Sealer, declared_in

SEARCHED_CHARACTERS = 16_000_000
"""Length of the values that one run reads. Items whose values are beyond it are examined by the next run."""
PAGE_CHARACTERS = 2_000_000
"""Length of the values that one statement reads, or those of one value that is longer."""
PAGE_ROWS = 100

_VALUES = """
SELECT tenant_id, key, version, value FROM memory_items WHERE (tenant_id, key) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
  AND tier = 'warm' AND key_id IS NULL AND value IS NOT NULL AND NOT deleted ORDER BY tenant_id, key
"""
_SEAL = """
UPDATE memory_items SET value = ?, key_id = ? WHERE tenant_id = ? AND key = ? AND version = ?
  AND tier = 'warm' AND key_id IS NULL AND NOT deleted
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SearchedValues:
    """What a search did. counts: `sealed`, and `unsealed` for values with PII that could not be sealed.

    postponed: tenant and key of items whose values the next run searches.
    """

    counts: Mapping[str, int]
    postponed: Collection[tuple[str, str]]


class UnsealedValues:
    """Finds and seals them. sealer: None, or one without a key, leaves them where they are and reports them."""

    def __init__(self, sql: Sql, namespacing: Namespacing, sealer: Sealer | None) -> None:
        self._sql = sql
        self._namespacing = namespacing
        self._sealer = sealer
        self._fields = FIELDS if sealer is None else sealer.fields

    async def seal(self, rows: Sequence[Row]) -> SearchedValues:
        """Seal the values with PII among these items. Idempotent.

        rows: with tenant_id, key, and the length of an unsealed value of the warm tier as plain, None for other items.
        A value that cannot be sealed is counted and logged without its content, and does not stop the rest.
        Raises: Unavailable; what was sealed until then stays sealed.
        """
        counts, codes, postponed, read = Counter[str](), Counter[str](), set[tuple[str, str]](), 0
        for page in _pages([row for row in rows if row["plain"] is not None]):
            if read >= SEARCHED_CHARACTERS:
                postponed.update((row["tenant_id"], row["key"]) for row in page)
                continue
            read += sum(int(row["plain"]) for row in page)
            keys = json.dumps([[row["tenant_id"], row["key"]] for row in page])
            updates: list[Statement] = []
            for row in (await self._sql.run(_VALUES, keys)).rows:
                try:
                    updates += await self._sealed(row)
                except RetainError as error:
                    codes[error.code] += 1
            if updates:
                counts["sealed"] += sum(done.changes for done in await self._sql.batch(updates))
        if codes:
            counts["unsealed"] = codes.total()
            _log.error("PII is stored unsealed", extra={"values": dict(codes)})
        return SearchedValues(counts, postponed)

    async def _sealed(self, row: Row) -> list[Statement]:
        """Return the statement that seals the value, if it has PII and has not changed since."""
        key, value = row["key"], str(row["value"])
        if not declared_in(value, self._fields):
            return []
        if self._sealer is None:
            raise Misconfigured("the value holds PII, and there is no key to seal it", code="memory_key_missing")
        item = self._namespacing.item_of(key)  # sealed for its canonical key, whichever it is under
        sealed = await self._sealer.seal(key if item is None else str(item), value)
        return [(_SEAL, (sealed, self._sealer.key_id(), row["tenant_id"], key, int(row["version"])))]


def _pages(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield the rows in pages whose values are short enough to be read together."""
    page, length = list[Row](), 0
    for row in rows:
        if page and (len(page) == PAGE_ROWS or length + int(row["plain"]) > PAGE_CHARACTERS):
            yield page
            page, length = [], 0
        page.append(row)
        length += int(row["plain"])
    if page:
        yield page
