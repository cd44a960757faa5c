"""Learn from runs that have ended: extract facts, keep them, store them for the run's user, report it to D1.

Each step is durable before the next. What a crash interrupts is repeated by the object's alarm: extracted facts are stored
as they were, and a fact that is stored changes nothing. What fails too often is reported as lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from retain.agents.definitions import AgentDefinition
from retain.agents.instance_ports import InstancePorts
from retain.agents.learning.own_words import FoundFacts, extract
from retain.agents.pending_learnings import PendingLearning
from retain.agents.runs.journal import Journal
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Conflict, RetainError, Unavailable, UpstreamFailed
from retain.ingest.extraction import ExtractedFact
from retain.ingest.learning import SourcedFact, learned
from retain.json_text import Json
from retain.memory.records.record import Record, RecordSource, composed
from retain.memory.semantic import SemanticMemory
from retain.models.chat import spent

LEASE_MS = 120_000
"""After this time an attempt counts as interrupted."""
MAX_ATTEMPTS = 5
FIRST_PAUSE_MS = 2_000
"""Pause after the first failed attempt; it doubles with each further one."""

_LEARNED = """
SELECT DISTINCT r.id FROM json_each(?3) wanted JOIN memory_records r
  ON r.tenant_id = ?1 AND r.scope_id = ?2 AND r.subject = wanted.value ->> 0 AND r.predicate = wanted.value ->> 1
WHERE json_extract(r.source, '$.run_id') = ?4 AND json_extract(r.source, '$.origin') = 'extraction' ORDER BY r.id
"""
_log = logging.getLogger(__name__)


class RunLearning:
    """Learns from the runs of one instance. agent: theirs. semantic: returns the memory of a run for a user."""

    def __init__(
        self,
        ports: InstancePorts,
        journal: Journal,
        agent: OwnAgent,
        semantic: Callable[[AgentDefinition, str | None], SemanticMemory],
    ) -> None:
        self._ports = ports
        self._journal = journal
        self._agent = agent
        self._semantic = semantic
        self._one_at_a_time = asyncio.Lock()

    async def work(self) -> bool:
        """Learn from the runs that are due; return whether there were any. Waits for a call under way. Raises nothing.

        A failed attempt is repeated later.
        """
        async with self._one_at_a_time:
            due = self._journal.pending.due(self._ports.clock())
            for pending in due:
                await self._attempt(pending)
            return bool(due)

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Let nothing be learned meanwhile, after any call under way has ended."""
        async with self._one_at_a_time:
            yield

    async def _attempt(self, pending: PendingLearning) -> None:
        run_id, clock = pending.run_id, self._ports.clock
        if pending.attempts >= MAX_ATTEMPTS:
            self._lose(pending, "resumed_too_often", "the learning was interrupted too often")
            return
        self._journal.pending.begin(run_id, clock() + LEASE_MS)
        try:
            self._journal.learned(run_id, await self._learn(pending))
        except RetainError as error:
            repeatable = isinstance(error, Unavailable | UpstreamFailed | Conflict)
            if not repeatable or pending.attempts + 1 >= MAX_ATTEMPTS:
                self._lose(pending, error.code, error.message)
                return
            _log.warning("learning waits", extra={"run_id": run_id, "code": error.code})
            self._journal.pending.postpone(run_id, clock() + (FIRST_PAUSE_MS << pending.attempts))
        except Exception:  # noqa: BLE001 -- the instance's next run must not fail for it
            _log.exception("learning failed unexpectedly", extra={"run_id": run_id})
            self._journal.pending.postpone(run_id, clock() + (FIRST_PAUSE_MS << pending.attempts))

    def _lose(self, pending: PendingLearning, code: str, message: str) -> None:
        _log.error("nothing was learned from a run", extra={"run_id": pending.run_id, "code": code})
        error: dict[str, Json] = {"code": code, "message": message}
        self._journal.learned(pending.run_id, {"status": "failed", "method": pending.method, "error": error})

    async def _learn(self, pending: PendingLearning) -> dict[str, Json]:
        """Extract, unless that was done, and store; return the report."""
        run = self._journal.runs.first(pending.run_id)
        definition = self._agent.of_run(run)
        if pending.found is None:
            model = self._ports.chat
            found = await extract(run, pending.method, lambda: model(definition))
            self._journal.pending.keep(pending.run_id, found.to_json())
        else:
            found = FoundFacts.from_text(pending.found)
        records = (
            await self._store(pending, self._semantic(definition, run.request.user_id), found.facts)
            if found.facts
            else []
        )
        _log.info("facts learned", extra={"run_id": pending.run_id, "records": len(records)})
        report: dict[str, Json] = {"status": "learned", "method": pending.method, "records": records, "cut": found.cut}
        return {**report, "usage": {**spent(found.usage)}}

    async def _store(
        self, pending: PendingLearning, memory: SemanticMemory, facts: Sequence[ExtractedFact]
    ) -> list[str]:
        """Store the facts that the run could not recall already; return the ids of those that it taught."""
        source = RecordSource("extraction", run_id=pending.run_id, step=1)
        known = await memory.known_as([fact.content for fact in facts])
        new = [one for pair in zip(facts, known, strict=True) if (one := _unrecalled(memory, *pair)) is not None]
        sourced = [SourcedFact(fact, source, pending.ended_at_ms) for fact in new]
        await memory.learn(learned(sourced))
        scope, about = memory.scope, json.dumps([[composed(fact.subject), fact.predicate] for fact in facts])
        rows = (await self._ports.sql.run(_LEARNED, scope.tenant_id, scope.scope_id, about, pending.run_id)).rows
        return [row["id"] for row in rows]


def _unrecalled(memory: SemanticMemory, fact: ExtractedFact, known: Record | None) -> ExtractedFact | None:
    """Return the fact as it is to be stored: in the words of the scope's own record; None if another scope has it."""
    if known is None:
        return fact
    return replace(fact, content=known.content) if known.scope_id == memory.scope.scope_id else None
