"""Records that the vector index may not show yet: the newest writes, which are compared by their signatures.

Up to 2,000 signatures are half a megabyte, most of what a recall would read while an index is late. So an isolate keeps
those that it has read, and D1 returns the names of all fresh records, and the signatures of those that are newer than what
is kept.

A name has all that a signature depends on: the record's id, its content and speaker by their hash, and when the index
became owed its vectors, which every write of a signature moves. What is kept is used for an equal name alone,
in the same tenant, scopes and model. So it is never another's nor an earlier one, whatever happens meanwhile: an edited
record has another name, and one that was deleted, is no longer valid or is not visible has none. When a name is missing, its
signature is read in a round trip of its own: that follows a write that was as late as `LATE_MS`, or the deletion of one of
more than `FRESH_LIMIT`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import xor

from retain.memory.recall.candidates import Visible
from retain.memory.recall.ranking import COSINES
from retain.ports import Row, Sql, Statement

FRESH_LIMIT = 2000
"""The most recently written records, whose vectors the index may not show yet, that are ranked by their signatures."""
FRESH_CHOSEN = 200
"""Fresh records that are looked at for their signatures alone: more than are chosen."""
KEPT_LIMIT = 10_000
"""The most signatures that an isolate keeps, of all tenants: about 5 MB."""
KEPT_MS = 300_000
"""Those of a view that nobody recalled in for so long are not kept: as long as an index may be late."""
LATE_MS = 5_000
"""A write is visible at most this long after the time that it has, or its signature is read in another trip."""
_FROM_THE_BEGINNING = -1
_NAME = "r.id || '.' || substr(r.content_hash, 1, 16) || o.at_ms"
_TABLES = "CROSS JOIN memory_records r ON r.id = {} CROSS JOIN memory_search s ON s.number = r.number"


@dataclass(frozen=True, slots=True)
class Fresh:
    """Records that the index may not show yet, in one order: their signatures, and 1 for each of which it may be wrong."""

    ids: Sequence[str] = ()
    signatures: Sequence[int] = ()
    changed: str = ""
    all: frozenset[str] = frozenset()

    def nearest(self, query_signature: int, found: Set[str]) -> dict[str, tuple[float, bool]]:
        """Return the estimated cosines of those that may be chosen, by id, each with whether it was changed.

        Those are the `FRESH_CHOSEN` nearest, and what else was found.
        """
        if not self.ids:
            return {}
        # Up to 2,000 of them: each of these loops is the interpreter's own.
        distances = list(map(int.bit_count, map(xor, repeat(query_signature), self.signatures)))
        farthest = sorted(distances)[:FRESH_CHOSEN][-1]
        return {
            one: (COSINES[distance], changes == "1")
            for one, distance, changes in zip(self.ids, distances, self.changed, strict=True)
            if distance <= farthest or one in found
        }


@dataclass(frozen=True, slots=True)
class _KeptView:
    """What was read in a view. names: as D1 returned them, of `fresh`. until_ms: what is older is in it. at_ms: last use."""

    names: str = ""
    by_name: Mapping[str, int] = field(default_factory=dict)
    fresh: Fresh = field(default_factory=Fresh)
    until_ms: int = _FROM_THE_BEGINNING
    at_ms: int = 0


_View = tuple[str, tuple[str, ...], bool, str]
"""Tenant, scopes, whether they are the whole tenant, and model."""


class KeptSignatures:
    """The signatures that one isolate has read, by view: those of what each view had last, bounded in number and time."""

    def __init__(self) -> None:
        self._views: OrderedDict[_View, _KeptView] = OrderedDict()
        """The one that was used longest ago first. There may be thousands: no recall looks at all of them."""
        self._count = 0

    @property
    def count(self) -> int:
        """How many signatures are kept."""
        return self._count

    def of(self, view: _View, now_ms: int) -> _KeptView:
        """Return what is kept of a view."""
        while self._views and abs(now_ms - next(iter(self._views.values())).at_ms) > KEPT_MS:
            self._forget(next(iter(self._views)))
        return self._views.get(view) or _KeptView()

    def put(self, view: _View, kept: _KeptView) -> None:
        """Keep what a view has now, instead of what it had, and as much of the others as there is room for."""
        self._forget(view)
        if kept.by_name:
            self._views[view] = kept
            self._count += len(kept.by_name)
        while self._count > KEPT_LIMIT:
            self._forget(next(iter(self._views)))

    def _forget(self, view: _View) -> None:
        kept = self._views.pop(view, None)
        self._count -= 0 if kept is None else len(kept.by_name)


class FreshReading:
    """One recall's reading of the records that the index may not show yet."""

    def __init__(self, kept: KeptSignatures, visible: Visible, model: str, since_ms: int, now_ms: int) -> None:
        """since_ms: what the index was sent before is shown. model: whose signatures to read.

        What is visible of other times and with a condition is read as if nothing was kept, and not kept.
        """
        self._all = kept
        self._visible = visible
        self._model = model
        self._since_ms = since_ms
        self._now_ms = now_ms
        reach = visible.reach
        self._view: _View = reach.tenant_id, reach.scope_ids, reach.whole, model
        self._keeps = visible.known_at_ms is None and not visible.is_filtered and visible.at_ms == now_ms
        self._kept = kept.of(self._view, now_ms) if self._keeps else _KeptView()

    def statement(self) -> Statement:
        """Return the statement that `read` reads: four texts, and the time of the newest.

        changed: the index may show the record's old vectors, so the signature counts. A signature is empty if it is kept.
        """
        visible = self._visible
        where, values = visible.where()
        lately = (
            "SELECT record_id, changed, at_ms FROM memory_outbox WHERE tenant_id = ?1 AND state = '{}'"
            " AND (?2 OR scope_id IN (SELECT value FROM json_each(?3)))"
        )
        return (
            f"SELECT group_concat({_NAME}) AS names, group_concat(o.changed, '') AS changed,"
            " group_concat(CASE WHEN o.at_ms > ?6 THEN s.signature ELSE '' END) AS signatures, MAX(o.at_ms) AS latest"
            f" FROM ({lately.format('owed')} UNION ALL {lately.format('sent')} AND at_ms >= ?4"
            f" ORDER BY at_ms DESC LIMIT {FRESH_LIMIT}) o {_TABLES.format('o.record_id')}"
            f" WHERE s.parts > 0 AND s.embedding_model = ?5 AND {where}",
            (
                visible.tenant_id,
                int(visible.reach.whole),
                json.dumps(visible.scope_ids),
                self._since_ms,
                self._model,
                self._kept.until_ms,
                *values,
            ),
        )

    async def read(self, row: Row, sql: Sql) -> Fresh:
        """Return the fresh records, and keep their signatures. row: the statement's only one.

        One round trip if a signature was taken for kept and is not. Raises: Unavailable.
        """
        if not row["names"]:
            return Fresh()
        until_ms = min(int(row["latest"]), self._now_ms - LATE_MS)
        kept, text = self._kept, str(row["names"])
        if text == kept.names:
            fresh = Fresh(kept.fresh.ids, kept.fresh.signatures, row["changed"], kept.fresh.all)
            self._keep(_KeptView(text, kept.by_name, fresh, max(until_ms, kept.until_ms), self._now_ms))
            return fresh
        names, given, changed = text.split(","), str(row["signatures"]).split(","), str(row["changed"])
        new = {name: int(one, 16) for name, one in compress(zip(names, given, strict=True), given)}
        known = {**kept.by_name, **new}
        if missing := [name for name in names if name not in known]:
            known |= await self._missing(missing, sql)
            there = [name in known for name in names]
            names, changed = list(compress(names, there)), "".join(compress(changed, there))
            text = ""
        ids = list(map(_id_of, names))
        signatures = [known[name] for name in names]
        fresh = Fresh(ids, signatures, changed, frozenset(ids))
        self._keep(_KeptView(text, dict(zip(names, signatures, strict=True)), fresh, until_ms, self._now_ms))
        return fresh

    def _keep(self, kept: _KeptView) -> None:
        if self._keeps:
            self._all.put(self._view, kept)

    async def _missing(self, names: Sequence[str], sql: Sql) -> dict[str, int]:
        """Return the signatures of those that are still there, and as they were named."""
        found = await sql.run(
            f"SELECT {_NAME} AS name, s.signature FROM json_each(?) one CROSS JOIN memory_outbox o"
            f" ON o.record_id = one.value AND o.tenant_id = ? {_TABLES.format('o.record_id')}"
            " WHERE s.embedding_model = ?",
            json.dumps(list(map(_id_of, names))),
            self._visible.tenant_id,
            self._model,
        )
        return {str(row["name"]): int(str(row["signature"]), 16) for row in found.rows}


def _id_of(name: str) -> str:
    return name.partition(".")[0]
