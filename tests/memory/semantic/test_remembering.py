"""What is recalled, now and as of any earlier time, after any sequence of operations.

A state machine stores, changes and deletes memories while the vector index lags and writers die, and queries each of
them after each step. The laws need no second implementation of the rules: what is valid is found first by its words,
what is not valid is not found, and what was found at some time is always found as of that time, unless it was deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retain.errors import Conflict, RetainError, Unavailable
from retain.memory.records.record import NewRecord, Record, RecordSource
from retain.memory.semantic import RecallQuery
from tests.memory.semantic.agreement import check_agreement, check_records
from tests.memory.semantic.indexes import LaggingIndex
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, PERSON, Substrate
from tests.support.faults import Crash, Fault, Faults

CONTENTS = (
    "Ann rides a bicycle.",
    "Bob pays invoices late.",
    "Warehouse doors close on Fridays.",
    "客户的订单已取消",
    "ลูกค้าชอบกาแฟ",
)
"""No two contents share a word."""
STATES = ("open", "shut")
LAG_MS = 30_000

contents = st.sampled_from(CONTENTS)
sources = st.sampled_from((AGENT_SOURCE, PERSON))
facts: st.SearchStrategy[dict[str, Any]] = st.sampled_from(({}, {"subject": "ann", "predicate": "does"}))
states = st.sampled_from(STATES)
numbers = st.integers(0, 20)
changes = st.one_of(
    st.fixed_dictionaries({"content": contents}),
    st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"state": states})}),
    st.fixed_dictionaries({"expires_at_ms": st.none()}),
)
Past = dict[str, dict[str, str]]
"""The records found at a time: by filter, their contents by id."""


def _last_beginning(record: Record) -> int:
    """Return when the last span begins for which the record was stated: of competing facts, the later one is valid."""
    return max((begin for begin, _ in record.claims), default=record.valid_from_ms)


class Remembering(RuleBasedStateMachine):
    """One agent's memory, written and recalled."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.substrate = Substrate()
        self.lagging = LaggingIndex(self.substrate.vectors, self.substrate.clock, LAG_MS)
        self.substrate.index = self.lagging
        self.past: dict[int, Past] = {}
        self.deleted: set[str] = set()

    def teardown(self) -> None:
        """Check that both indexes agree with the records once everything is settled."""
        try:
            for _ in range(2):
                self.substrate.clock.advance(3_600_000)
                assert self.run(self.substrate.indexer().reconcile()).failed == 0
            self.run(self.substrate.found("anything"))
            self.run(check_agreement(self.substrate))
        finally:
            self.close()

    def close(self) -> None:
        self.substrate.close()
        self.runner.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    def records(self) -> list[Record]:
        listed: list[Record] = self.run(self.substrate.listed())
        return listed

    def one_of_them(self, number: int) -> Record:
        listed = self.records()
        return listed[number % len(listed)]

    def closed_by(self, record: Record) -> str | None:
        """Return who closed a record last."""
        _, events = self.run(self.substrate.memory().get(record.id))
        closing = [event for event in events if event.kind in ("invalidated", "superseded")]
        return closing[-1].source["origin"] if closing else None

    @rule(content=contents, fact=facts, state=states, source=sources, lives_ms=st.none() | st.integers(1, 90_000))
    def store(self, content: str, fact: dict[str, Any], state: str, source: RecordSource, lives_ms: int | None) -> None:
        now = self.substrate.clock()
        before = next((record for record in self.records() if record.content == content), None)
        shut = before is not None and before.valid_to_ms is not None and self.closed_by(before) == "person"
        expires_at_ms = None if lives_ms is None else now + lives_ms
        new = NewRecord(content, metadata={"state": state}, expires_at_ms=expires_at_ms, **fact)
        result = self.run(self.substrate.memory().store(new, source))
        after = self.run(self.substrate.record(result.id))
        assert result.created == (before is None)
        began_last = max(
            (_last_beginning(record), record.id)
            for record in self.records()
            if (record.subject, record.predicate) == (after.subject, after.predicate)
        )
        if shut and source is not PERSON:
            assert after == before
        elif began_last <= (now, after.id) and (
            before is None or before.valid_to_ms is None or before.valid_to_ms <= now
        ):
            assert after.holds_at(max(now, after.recorded_at_ms))
        if before is not None and before.holds_at(now):
            named = {name.partition(".")[0] for name in result.merged}
            closed = {"valid_to_ms", "superseded_by"} if named & {"subject", "predicate"} else set()
            unnamed = {name: getattr(before, name) for name in named | closed | {"updated_at_ms", "edited"}}
            assert replace(after, **unnamed) == before, "storing again what is valid adds what `merged` names"
        repeated = self.run(self.substrate.memory().store(new, source))
        assert (repeated.id, repeated.created, repeated.merged) == (result.id, False, ())
        assert self.run(self.substrate.record(result.id)) == after, "the same call again changes nothing"

    @rule(several=st.lists(contents, min_size=2, max_size=5), source=sources)
    def store_several_about_the_same(self, several: list[str], source: RecordSource) -> None:
        """Store several facts in one call: of those, only the last one that may be valid is."""
        news = [NewRecord(content, subject="ann", predicate="does") for content in several]
        known = {record.content: record for record in self.records()}
        self.run(self.substrate.memory().store_all(news, source))
        if any(record.valid_to_ms is not None or record.predicate is None for record in known.values()):
            return  # closed by hand, for now or later, or about something else
        now, after = self.substrate.clock(), {record.content: record for record in self.records()}
        assert after[several[-1]].holds_at(now) or several[-1] in known

    @precondition(lambda self: self.records())
    @rule(number=numbers, change=changes, source=sources)
    def edit(self, number: int, change: dict[str, Any], source: RecordSource) -> None:
        with suppress(Conflict):
            self.run(self.substrate.memory().edit(self.one_of_them(number).id, change, source))

    @precondition(lambda self: self.records())
    @rule(number=numbers, ahead_ms=st.integers(-5_000, 5_000), source=sources)
    def invalidate(self, number: int, ahead_ms: int, source: RecordSource) -> None:
        at_ms = self.substrate.clock() + ahead_ms
        self.run(self.substrate.memory().invalidate(self.one_of_them(number).id, at_ms, source))

    @precondition(lambda self: self.records())
    @rule(number=numbers)
    def restore(self, number: int) -> None:
        self.run(self.substrate.memory().restore(self.one_of_them(number).id, PERSON))

    @precondition(lambda self: self.records())
    @rule(number=numbers)
    def delete(self, number: int) -> None:
        record = self.one_of_them(number)
        self.run(self.substrate.memory().delete(record.id, PERSON))
        self.deleted.add(record.id)

    @rule(duration_ms=st.sampled_from((1, 5_000, LAG_MS, 61_000, 700_000)))
    def wait(self, duration_ms: int) -> None:
        self.substrate.clock.advance(duration_ms)

    @rule()
    def reconcile(self) -> None:
        assert self.run(self.substrate.indexer().reconcile()).failed == 0

    @rule(
        what=st.sampled_from(("store", "edit", "invalidate", "delete")),
        content=contents,
        number=numbers,
        error=st.sampled_from((Unavailable("the test fails this call"), Crash())),
        nth=st.integers(1, 16),
        done=st.booleans(),
    )
    def be_interrupted(self, what: str, content: str, number: int, error: BaseException, nth: int, done: bool) -> None:
        """A writer fails or dies at some call of a port; nothing repairs it before the reconciler's next run."""
        listed = self.records()
        if not listed and what != "store":
            return
        record_id = listed[number % len(listed)].id if listed else ""
        substrate, faults = self.substrate, Faults(lambda owner: None)
        life = faults.life("writer")
        substrate.sql = faults.wrap("sql", substrate.d1, life)
        substrate.index = faults.wrap("index", self.lagging, life)
        faults.plan(Fault(error, nth))
        memory = substrate.memory()
        operations: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "store": lambda: memory.store(NewRecord(content, metadata={"state": "open"}), AGENT_SOURCE),
            "edit": lambda: memory.edit(record_id, {"content": content}, PERSON),
            "invalidate": lambda: memory.invalidate(record_id, substrate.clock(), PERSON),
            "delete": lambda: memory.delete(record_id, PERSON),
        }
        with suppress(RetainError, Crash):
            self.run(operations[what]())
        substrate.sql, substrate.index = substrate.d1, self.lagging
        self.deleted |= {record.id for record in listed} - {record.id for record in self.records()}

    @invariant()
    def records_are_the_fold_of_their_events(self) -> None:
        self.run(check_records(self.substrate))

    @invariant()
    def what_is_valid_is_found_first_and_nothing_else_is_found(self) -> None:
        now = self.substrate.clock()
        held = {record.id: record for record in self.records() if record.holds_at(now)}
        for record in held.values():
            hits = self.run(self.substrate.hits(record.content, AGENT, top_k=50))
            assert hits[0].record == record, f"{record.content} is not found first"
            assert {hit.record.id for hit in hits} <= held.keys()

    @invariant()
    def the_past_is_what_it_was(self) -> None:
        now = self.substrate.clock()
        for at_ms, found in self.past.items():
            if at_ms < now:
                expected = {
                    name: {record_id: content for record_id, content in one.items() if record_id not in self.deleted}
                    for name, one in found.items()
                }
                assert self.found(at_ms) == expected, f"as of {now - at_ms} ms ago"
        self.past[now] = self.found(None)

    def found(self, as_of_ms: int | None) -> Past:
        """Return what a query with the words of all contents recalls, by filter."""
        memory = self.substrate.memory()
        past: Past = {}
        for name, condition in {"": {}, **{state: {"state": state} for state in STATES}}.items():
            query = RecallQuery(" ".join(CONTENTS), 50, as_of_ms, filter=condition)
            past[name] = {hit.record.id: hit.record.content for hit in self.run(memory.search(query))}
        return past


TestRemembering = Remembering.TestCase
TestRemembering.settings = settings(
    max_examples=12,
    stateful_step_count=12,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
