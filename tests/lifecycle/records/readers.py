"""What each reader sees, compared with the model; and what the stores say about themselves."""

from __future__ import annotations

from collections.abc import Iterable

from retain.errors import NotFound
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import Record
from retain.memory.semantic import RecallQuery
from tests.lifecycle.records.model import PARENTS, Memory, Position, below, visible
from tests.lifecycle.records.places import RecordsWorld, scope_of

READERS: dict[str, tuple[str, ...]] = {
    **{place: (place,) for place in PARENTS},
    "ann of triage": ("triage", "ann_everywhere"),
    "ann of the agent": ("ann", "ann_everywhere"),
}
"""Who reads: from which places."""
QUERY = "Quillon Zandor Xyla lives works in Oslo Lima Rome ordered lamp hello"
"""Every record has a word of it."""
MOST = 45
"""The most records of which a recall must have all: it has at most fifty."""
ORPHANS = """
SELECT 1 FROM memory_outbox o WHERE o.tenant_id = ? AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = o.record_id)
"""
Seen = frozenset[tuple[str, str, Position | None, bool]]
"""Place, content and position of each record, and whether it is valid."""


class Readers:
    """Compares a deployment with the model of its tenants."""

    def __init__(self, world: RecordsWorld) -> None:
        self._world = world
        self._turn = 0
        self._past: dict[str, dict[int, dict[str, frozenset[tuple[str, str, Position | None]]]]] = {}

    async def check(self, tenant: str, memory: Memory) -> None:
        """Compare everything of one tenant."""
        records = await self.records(tenant)
        self._check_records(tenant, records, memory)
        await self._check_lists(tenant, memory)
        await self._check_recall(tenant, memory)
        await self._check_get(tenant, memory)
        await self._check_stores(tenant)
        await self._check_other_times(tenant, memory)

    def forget_the_past(self, tenant: str) -> None:
        """Compare no more with what was known before: an import brings what was known elsewhere."""
        self._past.pop(tenant, None)

    def forget_the_instant(self, tenant: str, at_ms: int) -> None:
        """Compare no more with what was known at a time at which more was recorded after the readers had looked."""
        self._past.get(tenant, {}).pop(at_ms, None)

    async def records(self, tenant: str) -> dict[str, Record]:
        """Return all records of a tenant."""
        found: dict[str, Record] = {}
        cursor: str | None = None
        while True:
            page, cursor = await list_records(self._world.sql, scope_of(tenant, "tenant"), Listing(cursor=cursor))
            found |= {record.id: record for record in page}
            if cursor is None:
                return found

    async def names(self, tenant: str) -> dict[tuple[str, str, Position | None], str]:
        """Return the ids of the tenant's records by place, content and position."""
        places, records = _place_names(tenant), await self.records(tenant)
        return {(places[one.scope_id], one.content, _position(one)): one.id for one in records.values()}

    async def seen(self, tenant: str) -> Seen:
        """Return what the tenant has, without ids."""
        names, now = _place_names(tenant), self._world.clock()
        records = (await self.records(tenant)).values()
        return frozenset((names[one.scope_id], one.content, _position(one), is_valid(one, now)) for one in records)

    def expected(self, memory: Memory) -> Seen:
        """Return what `seen` must be."""
        now = self._world.clock()
        return frozenset(
            (one.place, one.content, one.position, memory.is_valid(one.id, now)) for one in memory.records.values()
        )

    def _check_records(self, tenant: str, records: dict[str, Record], memory: Memory) -> None:
        names = _place_names(tenant)
        assert records.keys() == memory.records.keys(), f"{tenant} has other records"
        for record_id, one in memory.records.items():
            record = records[record_id]
            facts = memory.facts.stated[record_id]
            shown = (names[record.scope_id], record.content, record.kind, record.metadata, record.expires_at_ms)
            assert shown == (one.place, one.content, one.kind, one.metadata, facts.expires)
            assert {name: getattr(record, name) for name in one.parts} == one.parts, one.content
            assert (record.edited, _position(record)) == (one.persons, one.position), one.content
        for at in _instants(memory, records.values()):
            for record_id, one in memory.records.items():
                assert is_valid(records[record_id], at) == memory.is_valid(record_id, at), (
                    f"{one.content!r} in {one.place} at {at - self._world.clock()} ms from now"
                )

    async def _check_lists(self, tenant: str, memory: Memory) -> None:
        now = self._world.clock()
        for place in PARENTS:
            listed, cursor = await list_records(
                self._world.sql, scope_of(tenant, place), Listing(held_at_ms=now, limit=200)
            )
            assert cursor is None
            assert {one.id for one in listed} == {one.id for one in memory.valid(below(place), now)}, (
                f"listed at {place}"
            )

    async def _check_recall(self, tenant: str, memory: Memory) -> None:
        now = self._world.clock()
        for reader, places in READERS.items():
            within = visible(*places)
            hits = await self._world.seen_from(tenant, *places).search(RecallQuery(QUERY, 50))
            allowed = {one.id: one for one in memory.valid(within, now)}
            assert {hit.record.id for hit in hits} <= allowed.keys(), f"{reader} of {tenant} recalls too much"
            if len(allowed) > MOST:
                continue
            assert {(hit.record.content, _position(hit.record)) for hit in hits} == {
                (one.content, one.position) for one in allowed.values()
            }, f"{reader} of {tenant} recalls too little"
        if len(list(memory.valid(PARENTS, now))) > MOST:
            return
        everything = await self._world.recall(QUERY, tenant=tenant, top_k=50)
        assert {(hit.record.content, _position(hit.record)) for hit in everything} == {
            (one.content, one.position) for one in memory.valid(PARENTS, now)
        }, f"the administrator of {tenant}"

    async def _check_get(self, tenant: str, memory: Memory) -> None:
        """One reader per step gets every record by its id."""
        self._turn += 1
        reader = list(READERS)[self._turn % len(READERS)]
        places = READERS[reader]
        within = visible(*places) | below(places[0])
        seen = self._world.seen_from(tenant, *places)
        for one in memory.records.values():
            try:
                record, events = await seen.get(one.id)
            except NotFound:
                assert one.place not in within, f"{reader} does not get {one.content!r} of {one.place}"
            else:
                assert one.place in within, f"{reader} gets {one.content!r} of {one.place}"
                assert record.id == one.id
                assert events[0].kind == "stored"
        for grave in memory.graves.keys() - {name for name in memory.graves if name.startswith("copy")}:
            try:
                await seen.get(grave)
            except NotFound:
                continue
            raise AssertionError("a deleted record is there")

    async def _check_other_times(self, tenant: str, memory: Memory) -> None:
        """One reader per step asks what was known at an earlier time, and what is known of any time."""
        reader, now = list(READERS)[self._turn % len(READERS)], self._world.clock()
        past, seen = self._past.setdefault(tenant, {}), self._world.seen_from(tenant, *READERS[reader])
        earlier = sorted(at for at in past if at < now)
        if earlier:
            at = earlier[self._turn % len(earlier)]
            known = {one for one in past[at][reader] if one[0] in memory.records}
            hits = await seen.search(RecallQuery(QUERY, 50, as_of_ms=at))
            found = {(hit.record.content, _position(hit.record)) for hit in hits}
            if len(known) <= MOST:
                certain = {one for one in known if not memory.records[one[0]].forgotten}
                where = f"{reader} of {tenant} as of {now - at} ms ago"
                assert found <= {one[1:] for one in known}, f"{where}: too much"
                assert found >= {one[1:] for one in certain}, f"{where}: too little"
        instants = _instants(memory, ())
        at = instants[self._turn % len(instants)]
        valid = {(one.content, one.position) for one in memory.valid(visible(*READERS[reader]), at)}
        if len(valid) <= MOST:
            hits = await seen.search(RecallQuery(QUERY, 50, valid_at_ms=at))
            found = {(hit.record.content, _position(hit.record)) for hit in hits}
            assert found == valid, f"{reader} of {tenant} asks what is valid at {at - now} ms from now"
        past[now] = {
            name: frozenset((one.id, one.content, one.position) for one in memory.valid(visible(*places), now))
            for name, places in READERS.items()
        }

    async def _check_stores(self, tenant: str) -> None:
        drift = await self._world.drift(tenant)
        if await self._world.rows(ORPHANS, tenant):  # the index is owed what was deleted; the reconciler repairs it
            drift -= {"vector_surplus"}
        assert not drift, f"{tenant} has {sorted(drift)}"
        verdict = await self._world.stores().history().verify(tenant)
        assert verdict.problem is None, f"the history of {tenant}: {verdict}"


def is_valid(record: Record, at_ms: int) -> bool:
    """Return whether a record says of itself that it is valid at an instant."""
    return (
        record.valid_from_ms <= at_ms
        and (record.valid_to_ms is None or at_ms < record.valid_to_ms)
        and (record.expires_at_ms is None or at_ms < record.expires_at_ms)
        and not any(begin <= at_ms and (end is None or at_ms < end) for begin, end in record.gaps)
    )


def _position(record: Record) -> Position | None:
    return None if record.utterance is None else (record.utterance.conversation, record.utterance.position)


def _place_names(tenant: str) -> dict[str, str]:
    return {scope_of(tenant, place).scope_id: place for place in PARENTS}


def _instants(memory: Memory, records: Iterable[Record]) -> list[int]:
    """Return every instant at which anything may begin or end: between them nothing changes."""
    edges: set[int | None] = {1}
    for facts in memory.facts.stated.values():
        edges |= {*facts.since, *facts.since.values(), facts.expires}
    for record in records:
        edges |= {record.valid_from_ms, record.valid_to_ms, record.expires_at_ms}
        edges |= {edge for span in (*record.gaps, *record.claims) for edge in span}
    return sorted(edge for edge in edges if edge is not None)
