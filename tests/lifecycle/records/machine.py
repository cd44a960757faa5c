"""Everything that can happen to records, in any order, and what every reader sees after each step.

Each step is done to the deployment and to the model (`tests.lifecycle.records.model`); then both are compared. A step may
meet a fault: a store that fails before or after its work, or a process that dies there. Then it is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from copy import deepcopy
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from retain.errors import Conflict, NotFound, RetainError, Unavailable
from retain.lifecycle.consolidation import consolidate
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.lifecycle.export import export_page
from retain.lifecycle.importing import import_lines
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.verification import verify_page
from retain.memory.records.record import NewRecord
from retain.tenants.register import Tenants
from tests.e2e.puppet import order
from tests.lifecycle.records.model import Given, Memory, Remembered
from tests.lifecycle.records.places import AGENT, TRIAGE, RecordsWorld, fact_in
from tests.lifecycle.records.readers import Readers
from tests.lifecycle.world import AGENT as AGENT_SOURCE
from tests.lifecycle.world import PERSON
from tests.support.databases import connection_of
from tests.support.faults import Crash, Fault
from tests.support.machines import CountedMachine

Result = TypeVar("Result")
NAMES, CITIES = ("Quillon", "Zandor"), ("Oslo", "Lima", "Rome")
VERBS = {"lives_in": "lives in", "works_in": "works in"}
TERMS = (*NAMES, "Xyla", "Oslo")
SITES = (
    *(("acme", place) for place in ("tenant", "house", "agent", "triage", "ann", "bob", "ann_everywhere", "desk")),
    ("other", "tenant"),
    ("other", "agent"),
    ("mixed", "agent"),
)
TENANTS = ("acme", "other", "mixed", "copy")
BEFORE_AND_AFTER = (-50_000, -1_000, 0, 1_000, 40_000)
LIVES = (1_000, 40_000, 900_000)

sites = st.sampled_from(SITES)
numbers = st.integers(0, 60)
sinces = st.none() | st.sampled_from(BEFORE_AND_AFTER)
lives = st.none() | st.none() | st.sampled_from(LIVES)
metadatas = st.sampled_from(({}, {}, {"state": "open"}, {"state": "shut"}, {"via": "Xyla"}))
faults = st.none() | st.none() | st.tuples(st.sampled_from(("fails", "dies")), st.integers(1, 24))
edits = st.one_of(
    st.builds(
        lambda name, verb, city: {"content": f"{name} {VERBS[verb]} {city}."},
        st.sampled_from(NAMES),
        st.sampled_from(sorted(VERBS)),
        st.sampled_from(CITIES),
    ),
    st.fixed_dictionaries({"subject": st.sampled_from(("quillon", "zandor", None))}),
    st.fixed_dictionaries({"predicate": st.sampled_from(sorted(VERBS))}),
    st.fixed_dictionaries({"metadata": metadatas}),
    st.fixed_dictionaries({"kind": st.sampled_from(("fact", "task"))}),
    st.fixed_dictionaries({"expires_at_ms": lives}),
)


@st.composite
def statements(draw: st.DrawFn) -> tuple[Given, int | None, int | None]:
    """What may be drawn: the statement, from when and for how long, in milliseconds from now."""
    name, verb, city = draw(st.sampled_from(NAMES)), draw(st.sampled_from(sorted(VERBS))), draw(st.sampled_from(CITIES))
    parts = {"subject": name.lower(), "predicate": verb, "object": city}
    chosen = draw(st.sampled_from((parts, parts, parts, {}, {"subject": name.lower()})))
    given = Given(
        f"{name} {VERBS[verb]} {city}{draw(st.sampled_from(('.', '.', '.', '')))}",
        kind=draw(st.sampled_from(("fact", "fact", "fact", "task", "event"))),
        parts=chosen,
        metadata=draw(metadatas),
        person=draw(st.booleans()),
    )
    return given, draw(sinces), draw(lives)


class RecordsMachine(CountedMachine):
    """The records of four tenants: one that is used, a neighbour, one that imports into data, and one that only imports."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = RecordsWorld()
        self.readers = Readers(self.world)
        self.memories = {tenant: Memory() for tenant in TENANTS}
        self.exports: list[tuple[Memory, list[str]]] = []
        self.imported: dict[str, list[str]] = {}
        self.touched = set(TENANTS)
        self.conversations = 0
        self.lamps = 0

    def teardown(self) -> None:
        """Check everything once more when the index has caught up and no debt is left."""
        try:
            for _ in range(3):
                self.world.clock.advance(3_600_000)
                assert self.run(self.world.stores().indexer().reconcile()).failed == 0
            self.run(self.world.late.show())
            for tenant in TENANTS:
                self.run(self.readers.check(tenant, self.memories[tenant]))
            held = {vector_id.partition("#")[0] for vector_id in self.world.vectors()}
            assert held == {name for memory in self.memories.values() for name in memory.records}, (
                "vectors are left over"
            )
        finally:
            self.world.close()
            self.runner.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine."""
        return self.runner.run(work)

    @property
    def now(self) -> int:
        """Return the time."""
        return self.world.clock()

    def at(self, offset: int | None) -> int | None:
        """Return the time so many milliseconds from now."""
        return None if offset is None else self.now + offset

    def attempt(self, fault: tuple[str, int] | None, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do something that may meet a fault, and repeat it if it did."""
        if fault is not None:
            how, nth = fault
            error = Unavailable("the test fails this call") if how == "fails" else Crash()
            self.world.faults.plan(Fault(error, nth, owner="lifecycle"))
            try:
                return self.run(work())
            except (Unavailable, Crash):
                pass
            finally:
                self.run(self.world.restart())
        return self.run(work())

    def change(
        self,
        tenant: str,
        fault: tuple[str, int] | None,
        work: Callable[[], Coroutine[Any, Any, Result]],
        modelled: Callable[[Result], object],
    ) -> None:
        """Do something that happens whole or not at all, to the deployment and to the model."""
        self.touched.add(tenant)
        before, between = self.readers.expected(self.memories[tenant]), None
        if fault is not None:
            how, nth = fault
            error = Unavailable("the test fails this call") if how == "fails" else Crash()
            self.world.faults.plan(Fault(error, nth, owner="lifecycle"))
            try:
                result = self.run(work())
            except (Unavailable, Crash):
                self.run(self.world.restart())
                between = self.run(self.readers.seen(tenant))
                result = self.run(work())
            finally:
                self.run(self.world.restart())
        else:
            result = self.run(work())
        modelled(result)
        if between is not None:
            assert between in (before, self.readers.expected(self.memories[tenant])), "something is half done"

    def chosen(self, number: int) -> tuple[str, Remembered]:
        """Return one of the records, with its tenant."""
        held = [
            (tenant, self.memories[tenant].records[name])
            for tenant in TENANTS[:3]
            for name in sorted(self.memories[tenant].records)
        ]
        return held[number % len(held)]

    def has_records(self) -> bool:
        """Return whether a record can be chosen."""
        return any(self.memories[tenant].records for tenant in TENANTS[:3])

    @rule(site=sites, drawn=statements(), fault=faults)
    def tell(
        self, site: tuple[str, str], drawn: tuple[Given, int | None, int | None], fault: tuple[str, int] | None
    ) -> None:
        tenant, place = site
        given = self.dated(drawn)

        async def store() -> str:
            return (await self.world.of(tenant, place).store(_new(given), PERSON if given.person else AGENT_SOURCE)).id

        self.change(tenant, fault, store, lambda name: self.memories[tenant].tell(name, place, given, self.now))

    @rule(site=sites, several=st.lists(statements(), min_size=2, max_size=4), fault=faults)
    def tell_several(
        self, site: tuple[str, str], several: list[tuple[Given, int | None, int | None]], fault: tuple[str, int] | None
    ) -> None:
        tenant, place = site
        statements_given = [self.dated(drawn) for drawn in several]
        sources = [PERSON if given.person else AGENT_SOURCE for given in statements_given]
        if len({one.parts.get("subject") for one in statements_given}) < len(statements_given):
            fault = None  # a call again at the same instant states again which of its facts comes first

        async def store() -> list[str]:
            stored = await self.world.of(tenant, place).store_all([_new(given) for given in statements_given], sources)
            return [one.id for one in stored]

        def modelled(names: list[str]) -> None:
            for name, given in zip(names, statements_given, strict=True):
                self.memories[tenant].tell(name, place, given, self.now)

        self.change(tenant, fault, store, modelled)

    def dated(self, drawn: tuple[Given, int | None, int | None]) -> Given:
        """Return a statement with its times."""
        given, since, lasts = drawn
        begins = self.at(since)
        expires = None if lasts is None else max(begins or self.now, self.now) + lasts
        return Given(given.content, given.kind, given.parts, given.metadata, begins, expires, given.person)

    @precondition(has_records)
    @rule(number=numbers, changes=edits, person=st.booleans(), fault=faults)
    def edit(self, number: int, changes: Mapping[str, Any], person: bool, fault: tuple[str, int] | None) -> None:
        tenant, one = self.chosen(number)
        memory = self.memories[tenant]
        if "expires_at_ms" in changes:
            changes = {"expires_at_ms": self.at(changes["expires_at_ms"])}
        holder = memory.holder(one.place, changes.get("content", one.content), one.position)

        async def edit() -> bool:
            try:
                await self.world.of(tenant, one.place).edit(one.id, changes, PERSON if person else AGENT_SOURCE)
            except Conflict as error:
                assert error.code == "duplicate_content"
                return False
            return True

        def modelled(done: bool) -> None:
            assert done == (holder is None or holder is one)
            if done:
                memory.edit(one.id, changes, person=person)

        self.change(tenant, fault, edit, modelled)

    @precondition(has_records)
    @rule(number=numbers, at=st.sampled_from(BEFORE_AND_AFTER), person=st.booleans(), fault=faults)
    def close(self, number: int, at: int, person: bool, fault: tuple[str, int] | None) -> None:
        tenant, one = self.chosen(number)
        source, at_ms = PERSON if person else AGENT_SOURCE, self.now + at
        self.change(
            tenant,
            fault,
            lambda: self.world.of(tenant, one.place).invalidate(one.id, at_ms, source),
            lambda _: self.memories[tenant].close(one.id, at_ms, person=person),
        )

    @precondition(has_records)
    @rule(number=numbers, fault=faults)
    def restore(self, number: int, fault: tuple[str, int] | None) -> None:
        tenant, one = self.chosen(number)
        self.change(
            tenant,
            fault,
            lambda: self.world.of(tenant, one.place).restore(one.id, PERSON),
            lambda _: self.memories[tenant].facts.restore(one.id, self.now),
        )

    @precondition(has_records)
    @rule(number=numbers, fault=faults)
    def delete(self, number: int, fault: tuple[str, int] | None) -> None:
        tenant, one = self.chosen(number)

        async def delete() -> None:
            try:
                await self.world.of(tenant, one.place).delete(one.id, PERSON)
            except NotFound:
                assert fault is not None, "it was there"

        self.change(tenant, fault, delete, lambda _: self.memories[tenant].delete(one.id))

    @rule(duration_ms=st.sampled_from((1, 1_000, 31_000, 61_000, 700_000)))
    def wait(self, duration_ms: int) -> None:
        self.world.clock.advance(duration_ms)
        self.touched.update(TENANTS)

    @rule()
    def reconcile(self) -> None:
        assert self.run(self.world.stores().indexer().reconcile()).failed == 0

    @rule(fault=faults)
    def work_daily(self, fault: tuple[str, int] | None) -> None:
        done = self.attempt(fault, lambda: consolidate(self.world.stores()))
        if fault is not None and done.failed:  # the other tenants' work was done, the next day does this one's
            done = self.run(consolidate(self.world.stores()))
        assert done.failed == 0
        for memory in self.memories.values():
            memory.consolidate(self.now)
        self.touched.update(TENANTS)

    @rule(
        place=st.sampled_from(("tenant", "agent", "ann")),
        speaker=st.sampled_from(NAMES),
        messages=st.lists(
            st.tuples(
                st.sampled_from(("I live in Oslo.", "I live in Rome.", "hello")),
                st.none() | st.sampled_from((-50_000, -1_000, 0)),
            ),
            min_size=1,
            max_size=3,
        ),
        fault=faults,
    )
    def ingest(
        self, place: str, speaker: str, messages: list[tuple[str, int | None]], fault: tuple[str, int] | None
    ) -> None:
        memory = self.memories["acme"]
        if any(memory.facts.stated[one.id].expires for one in memory.records.values() if one.place == place):
            return  # whether what has expired is known in its own words is not documented
        if fault is not None:  # it may have to wait for the lease of a job to end
            messages = [(content, at or 0) for content, at in messages]
        began = self.now
        self.conversations += 1
        conversation = f"chat {self.conversations}"
        raw = [
            {
                "id": f"m{number}",
                "speaker": speaker,
                "content": content,
                **({} if at is None else {"at_ms": began + at}),
            }
            for number, (content, at) in enumerate(messages)
        ]

        async def take() -> str:
            ingestion = self.world.ingestion("acme", place)
            receipt = await ingestion.receive(conversation, raw)
            job = await ingestion.work(receipt.job.job_id)
            if job.state != "completed":
                raise Unavailable("the job is not complete")
            return job.state

        for _ in range(2):  # what failed is resumed by the same request, and what is complete is not repeated
            self.attempt(fault, lambda: self.patiently(take))
            fault = None
        self.readers.forget_the_instant("acme", began)
        memory, names = self.memories["acme"], self.names("acme")
        for number, (content, at) in enumerate(messages):
            position = (conversation, number)
            given = Given(content, "event", since=None if at is None else began + at)
            memory.tell(names[place, content, position], place, given, self.now, position, speaker)
        facts = [
            (began if at is None else began + at, fact_in(speaker, content))
            for content, at in messages
            if content != "hello"
        ]
        for at_ms, fact in sorted(facts, key=lambda one: one[0]):
            parts = {name: fact[name] for name in ("subject", "predicate", "object")}
            given = Given(fact["content"], parts=parts, since=at_ms)
            memory.learn(names.get((place, fact["content"], None), ""), place, given, self.now)
        self.touched.add("acme")

    async def patiently(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat what says that it must wait, as long as it takes."""
        for _ in range(3):
            try:
                return await work()
            except Unavailable:
                if self.world.faults.pending:
                    raise
                self.world.clock.advance(61_000)
        return await work()

    def names(self, tenant: str) -> dict[tuple[str, str, Any], str]:
        """Return the ids of the tenant's records by place, content and position."""
        return self.run(self.readers.names(tenant))

    @rule(
        name=st.sampled_from(NAMES),
        user=st.sampled_from((None, "ann", "bob")),
        shared=st.booleans(),
        triage=st.booleans(),
    )
    def let_an_agent_store(self, name: str, user: str | None, shared: bool, triage: bool) -> None:
        """An agent stores what its input says, for its user, its house or itself."""
        if triage and (shared or user == "bob"):
            return
        self.lamps += 1
        content = f"{name} ordered lamp {self.lamps}."
        arguments = {"content": content, **({"shared": True} if shared else {})}
        agent = TRIAGE if triage else AGENT
        more: dict[str, Any] = {} if user is None else {"user": {"id": user}}
        work = self.world.run(agent, order(("store_memory", arguments), say="done"), instance=f"desk-{user}", **more)
        assert self.run(work)["status"] == "completed"
        self.run(self.world.settled())
        own = {None: "triage", "ann": "ann_everywhere"} if triage else {None: "agent", "ann": "ann", "bob": "bob"}
        place = "house" if shared else own[user]
        self.memories["acme"].tell(self.names("acme")[place, content, None], place, Given(content), self.now)
        self.touched.add("acme")

    @rule()
    def export(self) -> None:
        self.exports.append((deepcopy(self.memories["acme"]), self.run(self.pages("acme"))))

    async def pages(self, tenant: str) -> list[str]:
        """Return the pages of an export."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await export_page(self.world.stores(), tenant, cursor)
            found.append(page.text)
            cursor = page.cursor
            if cursor is None:
                return found

    @precondition(lambda self: self.exports)
    @rule(number=numbers, into=st.sampled_from(("acme", "copy", "mixed")), unasked=st.booleans(), fault=faults)
    def import_(self, number: int, into: str, unasked: bool, fault: tuple[str, int] | None) -> None:
        """Import an export: again into its own tenant, into one that has nothing else, or into one with data.

        What changed since the export would be merged by events, which the model does not have: so a tenant takes one only.
        """
        then, pages = self.exports[number % len(self.exports)]
        if into != "acme" and self.imported.setdefault(into, pages) is not pages:
            return
        for page in pages:
            for _ in range(2):  # importing a line again changes nothing
                self.attempt(
                    fault,
                    lambda page=page: import_lines(self.world.stores(), into, page, include_erased=not unasked),  # type: ignore[misc]
                )
                fault = None
        self.readers.forget_the_past(into)
        self.memories[into].take_in(then, self.names(into), unasked=unasked, own=into == "acme")
        self.touched.add(into)

    @rule(fault=faults, tenant=st.sampled_from(TENANTS))
    def reindex(self, fault: tuple[str, int] | None, tenant: str) -> None:
        async def work() -> None:
            for _ in range(20):
                if (await Reindexing(self.world.stores()).advance(tenant)).state == "completed":
                    return
            raise AssertionError("the reindexing never completes")

        self.attempt(fault, work)
        self.touched.add(tenant)

    @rule(fault=faults, tenant=st.sampled_from(TENANTS))
    def verify_and_repair(self, fault: tuple[str, int] | None, tenant: str) -> None:
        self.attempt(fault, lambda: verify_page(self.world.stores(), tenant, None, repair=True))
        self.touched.add(tenant)

    @rule(table=st.sampled_from(("vectors", "memory_search", "memory_text")), reindex=st.booleans())
    def lose_an_index(self, table: str, reindex: bool) -> None:
        """An index is lost, and rebuilt."""
        self.world.clock.advance(3_600_000)
        self.run(self.world.stores().indexer().reconcile())
        self.run(self.world.late.show())
        self.world.clock.advance(3_600_000)
        self.run(self.world.stores().indexer().reconcile())
        if table == "vectors":
            connection_of(self.world.late).execute("DELETE FROM vectors")
        else:
            self.world.sql_now(f"DELETE FROM {table}")
        for tenant in TENANTS:
            if self.memories[tenant].records:
                assert self.run(self.world.drift(tenant)), "nobody sees that an index is lost"
            if reindex:
                self.rebuilt(tenant)
            else:
                assert self.run(verify_page(self.world.stores(), tenant, None, repair=True)).settled
        self.world.clock.advance(61_000)
        self.touched.update(TENANTS)

    def rebuilt(self, tenant: str) -> None:
        """Reindex a tenant."""
        while self.run(Reindexing(self.world.stores()).advance(tenant)).state != "completed":
            pass

    @rule(name=st.sampled_from(NAMES), tenant=st.sampled_from(TENANTS), fault=faults)
    def erase_a_subject(self, name: str, tenant: str, fault: tuple[str, int] | None) -> None:
        erasure = lambda: Erasure(self.world.stores()).erase_subject(tenant, name.lower(), "subject")  # noqa: E731
        self.erase(tenant, fault, erasure, lambda memory: memory.erase_subject(name.lower()))

    @rule(term=st.sampled_from(TERMS), tenant=st.sampled_from(TENANTS), fault=faults)
    def erase_a_mention(self, term: str, tenant: str, fault: tuple[str, int] | None) -> None:
        erasure = lambda: Erasure(self.world.stores()).erase_subject(tenant, term, "mention")  # noqa: E731
        self.erase(tenant, fault, erasure, lambda memory: memory.erase_mention(term))
        left = set() if self.imported and tenant == "acme" else self.left_of(term, tenant)  # a copy names its origin
        assert not left, f"{term} is left in {left}"
        if not any(memory.has_word(term) for memory in self.memories.values()):
            blocks = self.world.sql_now("SELECT block FROM memory_text_data")
            assert not any(term.lower().encode() in row["block"] for row in blocks), f"{term} is left in the full text"

    @rule(user=st.sampled_from(("ann", "bob")), fault=faults)
    def erase_a_user(self, user: str, fault: tuple[str, int] | None) -> None:
        erasure = lambda: Erasure(self.world.stores()).erase_user("acme", user)  # noqa: E731
        self.erase("acme", fault, erasure, lambda memory: memory.erase_user(user))

    @rule(tenant=st.sampled_from(("acme", "mixed", "copy")), fault=faults)
    def erase_the_tenant(self, tenant: str, fault: tuple[str, int] | None) -> None:
        def emptied(memory: Memory) -> set[str]:
            self.memories[tenant] = memory.emptied()
            return {*memory.records, *memory.graves}

        self.erase(tenant, fault, lambda: Erasure(self.world.stores()).erase_tenant(tenant), emptied)
        try:
            self.run(self.world.of(tenant, "agent").store(NewRecord("Nobody lives in Lima."), PERSON))
        except RetainError:
            self.imported.pop(tenant, None)
            self.run(Tenants(self.world.sql, self.world.clock).register(tenant))
        else:
            raise AssertionError("a tenant that was erased remembers")

    def erase(
        self,
        tenant: str,
        fault: tuple[str, int] | None,
        work: Callable[[], Coroutine[Any, Any, Outcome]],
        modelled: Callable[[Memory], set[str]],
    ) -> None:
        """Erase, as often as it takes, and check that no store knows of what is gone."""

        self.attempt(fault, lambda: self.world.completed(work))
        gone = modelled(self.memories[tenant])
        left = gone & self.run(self.world.known_ids())
        assert not left, "an erased record is left"
        self.touched.update(TENANTS)

    def left_of(self, text: str, tenant: str | None = None) -> set[str]:
        """Return the tables that have a text. The vector index is not looked at while it lags, but at the end."""
        self.run(self.world.late.show())
        return set(self.world.mentions(text, tenant=tenant)) - (
            {"vectors/vectors"} if self.world.late.lag_ms else set()
        )

    @initialize(lag_ms=st.sampled_from((0, 0, 30_000)))
    def begin(self, lag_ms: int) -> None:
        self.world.late.lag_ms = lag_ms
        for tenant in TENANTS:
            self.run(Tenants(self.world.sql, self.world.clock).register(tenant))

    @invariant()
    def everybody_sees_what_the_model_allows(self) -> None:
        for tenant in sorted(self.touched):
            self.run(self.readers.check(tenant, self.memories[tenant]))
        self.touched = {"acme"}


def _new(given: Given) -> NewRecord:
    return NewRecord(
        given.content,
        kind=given.kind,  # type: ignore[arg-type]
        metadata=dict(given.metadata),
        valid_from_ms=given.since,
        expires_at_ms=given.expires,
        subject=given.parts.get("subject"),
        predicate=given.parts.get("predicate"),
        object=given.parts.get("object"),
    )
