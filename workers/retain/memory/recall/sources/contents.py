"""The records of candidates: those that came with the search rows, and the others, read when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retain.json_text import read_own_json
from retain.memory.recall.as_of import read_records
from retain.memory.recall.candidates import Visible
from retain.memory.records.record import Record
from retain.memory.records.rows import RECORD_COLUMNS, record_of
from retain.ports import Sql


class Contents:
    """The records of one recall's candidates.

    texts: some of the records as JSON, of which only what is asked for is parsed. known: all records, if they were read
    already, which they are in the past.
    """

    def __init__(
        self, sql: Sql, visible: Visible, texts: Mapping[str, str], known: Mapping[str, Record] | None
    ) -> None:
        self._sql = sql
        self._visible = visible
        self._texts = texts
        self._known = dict(known or {})
        self._complete = known is not None

    def lacks(self, record_id: str) -> bool:
        """Return whether a record has to be read."""
        return not self._complete and record_id not in self._known and record_id not in self._texts

    async def of(self, record_id: str, following: Sequence[str]) -> Record | None:
        """Return a record; None when it cannot be seen. following: what will be asked for next, read in the same trip."""
        if record_id not in self._known and not self._complete:
            text = self._texts.get(record_id)
            if text is not None:
                values: list[Any] = read_own_json(text)
                self._known[record_id] = record_of(dict(zip(RECORD_COLUMNS, values, strict=True)))
            else:
                missing = [one for one in (record_id, *following) if one not in self._known and one not in self._texts]
                self._known |= await read_records(self._sql, missing, self._visible)
        return self._known.get(record_id)
