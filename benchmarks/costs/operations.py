"""The operations whose costs are counted, each once, on a database that `memories.fill` filled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.costs.database import Cost, CountedSql, counted_database
from benchmarks.costs.lists import fill_lists, list_operations
from benchmarks.costs.memories import COMMON, SCOPE, START_MS, FewVectors, fill, record_id
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.ingestion import Ingestion
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope, UserPlace
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.ports import Sql, VectorIndex
from tests.support.instances import Deployment, catalogue, shipped_embedder

Operation = Callable[[], Awaitable[object]]
USER = "zoe"
HOUSE = Scope("acme", house="orders")
"""A user and a house with two memories each, while the tenant has many."""
_PERSON = RecordSource("person")
_CLERK = {
    "type": "clerk",
    "description": "Clerk.",
    "instructions": "Help.",
    "model": {"script": "clerk"},
    "memory_config": {"long_term_enabled": True, "recall": "both"},
}
_SCRIPT = {
    "name": "clerk",
    "rules": [
        {
            "rule": "what the user says is stored",
            "when": {"last": "user", "find": {"user": "(?P<said>Note that .*)"}},
            "reply": {"calls": [{"tool": "store_memory", "arguments": {"content": "{said}"}}]},
        },
        {"rule": "anything else is done", "when": {}, "reply": {"text": "Done."}},
    ],
}


class _CountedDeployment(Deployment):
    """A deployment of the agent on the counted database, and on an index that holds nothing."""

    def __init__(self, sql: CountedSql, index: FewVectors) -> None:
        super().__init__(catalogue(_CLERK, scripts=[_SCRIPT]))
        self._counted = sql, index

    def shared(self) -> tuple[Sql, VectorIndex]:
        """Return the counted database and that index."""
        return self._counted


class Operations:
    """The operations on one filled database, by their names."""

    def __init__(self, sql: CountedSql, count: int, deployment: Deployment, memory: SemanticMemory) -> None:
        self._sql = sql
        self._count = count
        self._deployment = deployment
        self._memory = memory

    def all(self) -> Mapping[str, Operation]:
        """Return the operations, in the order in which they run."""
        middle = f"AB-{self._count // 2:06}"
        return {
            "recall, one rare word": self._recall(f"what about {middle}"),
            "recall, common words": self._recall(f"{' '.join(COMMON[:6])}"),
            "recall, one common word": self._recall(COMMON[0]),
            "recall, common words and a rare one": self._recall(f"{' '.join(COMMON[:6])} {middle}"),
            "recall, filtered": self._recall(COMMON[1], filter={"customer": "c-7"}),
            "recall, filtered by one of two": self._recall(COMMON[1], filter={"customer": {"$in": ["c-7", "c-8"]}}),
            "recall, filtered by a range": self._recall(COMMON[1], filter={"customer": {"$gte": "c-998"}}),
            "recall, filtered by either": self._recall(
                COMMON[1], filter={"$or": [{"customer": "c-7"}, {"subject": "thing-8"}]}
            ),
            "recall, filtered without an index": self._recall(COMMON[1], filter={"confidence": {"$lt": 0.5}}),
            "recall, filtered by what many have": self._recall(COMMON[1], filter={"topic": "t-7"}),
            "recall, all of the tenant": self._recall(f"{COMMON[2]} {middle}", below=True, scope=Scope("acme")),
            "recall, as of a time": self._recall(f"{COMMON[3]} {middle}", as_of_ms=START_MS + 1000 * self._count),
            "list": lambda: self._list(Listing()),
            "list, filtered by metadata": lambda: self._list(Listing({"customer": "c-7"}, limit=5)),
            "list, filtered by kind": lambda: self._list(Listing({"kind": "task"}, limit=5)),
            "list, filtered by one of two": lambda: self._list(Listing({"customer": {"$in": ["c-7", "c-9"]}}, limit=5)),
            "list, filtered by either": lambda: self._list(
                Listing({"$or": [{"customer": "c-7"}, {"subject": "thing-8"}]}, limit=5)
            ),
            "list, filtered without an index": lambda: self._list(Listing({"confidence": {"$lt": 0.01}}, limit=5)),
            "list, filtered by subject": lambda: self._list(Listing({"subject": "thing-8"}, limit=5)),
            "list of the scope, filtered": lambda: list_records(self._sql, SCOPE, Listing({"topic": "t-7"}, limit=5)),
            "list of a user": lambda: list_records(self._sql, UserPlace("acme", USER), Listing()),
            "list of a house, filtered": lambda: list_records(self._sql, HOUSE, Listing({"kind": "fact"})),
            "list of an agent": lambda: list_records(self._sql, SCOPE, Listing()),
            "get": lambda: self._memory.get(record_id(4)),
            "store": lambda: self._store("The kettle in the kitchen is broken."),
            "store, known": lambda: self._store("The kettle in the kitchen is broken."),
            "store a fact": lambda: self._fact("AB-9"),
            "store a fact that replaces another": lambda: self._fact("AB-10"),
            "edit": lambda: self._memory.edit(record_id(8), {"content": "The kettle was repaired."}, _PERSON),
            "delete": lambda: self._memory.delete(record_id(12), _PERSON),
            "ingest one message with a fact": lambda: self._ingest("I live in Paris."),
            "ingest the next message": lambda: self._ingest("I work as a nurse."),
            "run with recall": lambda: self._run(f"What about {middle}?"),
            "run with recall and a store": lambda: self._run("Note that Ann likes green tea."),
            **list_operations(self._sql),
        }

    async def cost(self, operation: Operation) -> Cost:
        """Return what one operation costs, with the work that it leaves in the background."""
        self._deployment.clock.advance(1000)
        self._sql.cost = Cost()
        await operation()
        await self._deployment.background.settled()
        return self._sql.cost

    def _recall(self, text: str, *, scope: Scope | None = None, **wanted: Any) -> Operation:
        memory = self._memory if scope is None else self._of(scope)
        return lambda: memory.recall(RecallQuery(text, **wanted))

    def _of(self, scope: Scope) -> SemanticMemory:
        return SemanticMemory(scope, *self._deployment.shared(), shipped_embedder(), self._deployment.clock)

    async def _list(self, wanted: Listing) -> None:
        await list_records(self._sql, Scope("acme"), wanted)

    async def _store(self, content: str) -> None:
        await self._memory.store(NewRecord(content), _PERSON)

    async def _fact(self, value: str) -> None:
        fact = NewRecord(f"The thing is {value}.", subject="thing-16", predicate="is", object=value)
        await self._memory.store(fact, _PERSON)

    async def _ingest(self, text: str) -> None:
        ingestion = Ingestion(self._memory, self._sql, RuleExtractor, self._deployment.clock)
        receipt = await ingestion.receive("talk-0", [{"speaker": "Bea", "content": text}], leased=True)
        job = await ingestion.process(receipt)
        assert job.state == "completed"

    async def _run(self, text: str) -> None:
        answer = await self._deployment.run("clerk", text)
        assert answer["status"] == "completed"


@asynccontextmanager
async def operations(count: int) -> AsyncIterator[Operations]:
    """Yield the operations on a new database with this many memories."""
    embedder = shipped_embedder()
    with TemporaryDirectory(prefix="retain-costs-") as folder, counted_database(Path(folder)) as sql:
        ids = await fill(sql, count, embedder.model)
        await fill_lists(sql)
        index = FewVectors(ids)
        with closing(_CountedDeployment(sql, index)) as deployment:
            deployment.clock.set(START_MS + 1000 * (count + 100_000))
            memory = SemanticMemory(SCOPE, sql, index, embedder, deployment.clock)
            known = Operations(sql, count, deployment, memory)
            for scope in (Scope("acme", user_id=USER), HOUSE):
                for text in ("The kettle is blue.", "The cup is green."):
                    await known._of(scope).store(NewRecord(text), _PERSON)
            yield known
