"""Records are the fold of their events after any sequence of operations, and everything else agrees with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retain.errors import Conflict, RetainError, Unavailable
from retain.memory.records.record import NewRecord, RecordSource, Utterance
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from tests.memory.semantic.agreement import check_agreement, check_records
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, HOUSE, INSTANCE, PERSON, TENANT, Substrate
from tests.support.faults import Crash, Fault, Faults

LONG = " ".join(f"Chapter {number} tells of {word} at some length." for number, word in enumerate(["tea", "sea"] * 40))
CONTENTS = (
    "Ann likes tea.",
    "Bob pays late.",
    "The office is closed on Fridays.",
    "Заказ отменён",  # the local model has no vector for it
    LONG,
    f"{LONG} And then some more: {LONG}",
)
SCOPES = (TENANT, HOUSE, AGENT, INSTANCE, Scope("acme", "triage"), Scope("other", "sdr"))

contents = st.sampled_from(CONTENTS)
scopes = st.sampled_from(SCOPES)
sources = st.sampled_from((AGENT_SOURCE, PERSON))
utterances = st.none() | st.builds(Utterance, st.just("chat-1"), st.integers(0, 3), st.just("Ann"), st.none())
facts = st.sampled_from(({}, {"subject": "ann", "predicate": "likes"}, {"subject": "bob", "predicate": "pays"}))
edits = st.one_of(
    st.fixed_dictionaries({"content": contents}),
    st.fixed_dictionaries({"metadata": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), max_size=2)}),
    st.fixed_dictionaries({"importance": st.sampled_from([0.0, 0.25, 1.0]), "kind": st.sampled_from(["fact", "task"])}),
    st.fixed_dictionaries({"subject": st.sampled_from(["ann", "bob", None]), "expires_at_ms": st.none()}),
)
numbers = st.integers(0, 20)
Key = tuple[Scope, str, Utterance | None]
errors = st.sampled_from((Unavailable("the test fails this call"), Crash()))


class LearningStream(RuleBasedStateMachine):
    """Any sequence of mutations, in several scopes of two tenants, some of them interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.substrate = Substrate()
        self.known: dict[str, Key] = {}
        """What must be remembered: scope, content and position of each record."""

    def teardown(self) -> None:
        self.substrate.close()
        self.runner.close()

    def one_of_the_known(self, number: int) -> tuple[str, SemanticMemory]:
        record_id = sorted(self.known)[number % len(self.known)]
        return record_id, self.substrate.memory(self.known[record_id][0])

    @rule(
        content=contents,
        scope=scopes,
        fact=facts,
        ago_ms=st.none() | st.integers(0, 5_000),
        utterance=utterances,
        source=sources,
    )
    def store(
        self,
        content: str,
        scope: Scope,
        fact: dict[str, Any],
        ago_ms: int | None,
        utterance: Utterance | None,
        source: RecordSource,
    ) -> None:
        valid_from_ms = None if ago_ms is None else self.substrate.clock() - ago_ms
        new = NewRecord(content, utterance=utterance, valid_from_ms=valid_from_ms, **fact)
        result = self.runner.run(self.substrate.memory(scope).store(new, source))
        same = [record_id for record_id, key in self.known.items() if key == (scope, content, utterance)]
        assert same == ([] if result.created else [result.id])
        self.known[result.id] = (scope, content, utterance)

    @rule(several=st.lists(contents, min_size=1, max_size=4), scope=scopes, fact=facts)
    def store_several(self, several: list[str], scope: Scope, fact: dict[str, Any]) -> None:
        news = [NewRecord(content, **fact) for content in several]
        results = self.runner.run(self.substrate.memory(scope).store_all(news, AGENT_SOURCE))
        for content, result in zip(several, results, strict=True):
            assert result.created == (result.id not in self.known)
            self.known[result.id] = (scope, content, None)

    @precondition(lambda self: self.known)
    @rule(number=numbers, changes=edits, source=sources)
    def edit(self, number: int, changes: dict[str, Any], source: RecordSource) -> None:
        record_id, memory = self.one_of_the_known(number)
        scope, content, utterance = self.known[record_id]
        wanted = (scope, changes.get("content", content), utterance)
        taken = [found for found, key in self.known.items() if key == wanted and found != record_id]
        try:
            record = self.runner.run(memory.edit(record_id, changes, source))
        except Conflict as error:
            assert taken
            assert error.code == "duplicate_content"
        else:
            assert not taken
            assert {name: getattr(record, name) for name in changes} == changes
            self.known[record_id] = wanted

    @precondition(lambda self: self.known)
    @rule(number=numbers, ahead_ms=st.integers(-5_000, 5_000))
    def invalidate(self, number: int, ahead_ms: int) -> None:
        record_id, memory = self.one_of_the_known(number)
        at_ms = self.substrate.clock() + ahead_ms
        record = self.runner.run(memory.invalidate(record_id, at_ms, PERSON))
        assert record.valid_to_ms == at_ms or record.superseded_by is not None

    @precondition(lambda self: self.known)
    @rule(number=numbers)
    def restore(self, number: int) -> None:
        record_id, memory = self.one_of_the_known(number)
        record = self.runner.run(memory.restore(record_id, PERSON))
        assert (record.valid_to_ms, record.superseded_by) == (None, None)

    @precondition(lambda self: self.known)
    @rule(number=numbers)
    def delete(self, number: int) -> None:
        record_id, memory = self.one_of_the_known(number)
        self.runner.run(memory.delete(record_id, PERSON))
        del self.known[record_id]

    @rule(duration_ms=st.integers(1, 100_000))
    def wait(self, duration_ms: int) -> None:
        self.substrate.clock.advance(duration_ms)

    @precondition(lambda self: self.known)
    @rule(
        what=st.sampled_from(("store", "edit", "invalidate", "delete")),
        content=contents,
        scope=scopes,
        number=numbers,
        error=errors,
        nth=st.integers(1, 24),
    )
    def be_interrupted(
        self, what: str, content: str, scope: Scope, number: int, error: BaseException, nth: int
    ) -> None:
        substrate, faults = self.substrate, Faults(lambda owner: None)
        life = faults.life("writer")
        substrate.sql = faults.wrap("sql", substrate.d1, life)
        substrate.index = faults.wrap("index", substrate.vectors, life)
        faults.plan(Fault(error, nth))
        record_id, memory = self.one_of_the_known(number)
        operations: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "store": lambda: substrate.memory(scope).store(NewRecord(content), AGENT_SOURCE),
            "edit": lambda: memory.edit(record_id, {"content": content}, PERSON),
            "invalidate": lambda: memory.invalidate(record_id, substrate.clock(), PERSON),
            "delete": lambda: memory.delete(record_id, PERSON),
        }
        with suppress(RetainError, Crash):
            self.runner.run(operations[what]())
        substrate.sql, substrate.index = substrate.d1, substrate.vectors
        self.runner.run(substrate.reconcile())
        self.runner.run(self.learn_what_happened())

    async def learn_what_happened(self) -> None:
        """Adopt what an interrupted operation did despite the interruption."""
        by_id = {(scope.tenant_id, scope.scope_id): scope for scope in SCOPES}
        self.known = {
            record.id: (by_id[record.tenant_id, record.scope_id], record.content, record.utterance)
            for tenant_id in ("acme", "other")
            for record in await self.substrate.listed(Scope(tenant_id))
        }

    @invariant()
    def everything_agrees(self) -> None:
        self.runner.run(check_agreement(self.substrate))
        stored = self.runner.run(check_records(self.substrate))
        assert {record.id: record.content for record in stored} == {key: value[1] for key, value in self.known.items()}


TestLearningStream = LearningStream.TestCase
TestLearningStream.settings = settings(
    max_examples=40,
    stateful_step_count=12,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
