"""Replaying parked errors: the work is done again by the part that owns it.

Whatever is replayed is idempotent in its part, or has the idempotency key that it had the first time, so a replay that was
interrupted can be repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.user import User
from retain.agents.identity import instance_of
from retain.agents.runs.tables import STATEMENTS
from retain.contracts.stored.document_index import DocumentIndex
from retain.errors import Conflict, ConstraintViolated, NoSuchTool, RetainError
from retain.evaluation.runner import Runner
from retain.ingest.ingestion import Ingestion
from retain.ingest.jobs import Jobs
from retain.items.demotion import Demotion
from retain.json_text import Json, JsonObject, read_own_json
from retain.ledgers.errors import ParkedError, Stage, Trouble, find_error, park, settle
from retain.lifecycle.backups.jobs import BackupJob
from retain.lifecycle.consolidation import consolidate
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope
from retain.shards.place import everywhere, in_tenant
from retain.tenants.attribution import acting_principal

CallTool = Callable[[str, str, JsonObject, str], Awaitable[tuple[int, bytes]]]
"""Calls a tool of a tenant in the gateway, with arguments and an idempotency key; returns the upstream's status and body."""

_OWED = "SELECT statement, parameters FROM outbox_failures WHERE instance_key = ? AND entry_id = ?"
_STILL_OWED = """
INSERT INTO outbox_failures (instance_key, entry_id, tenant_id, statement, parameters, error, failed_at_ms)
SELECT ?1, ?2, NULL, '', '', '', 0
WHERE NOT EXISTS (SELECT 1 FROM outbox_failures WHERE instance_key = ?1 AND entry_id = ?2)
"""
"""Violates a constraint, so that the batch writes nothing, when the row was removed since it was read."""
_WRITTEN = "DELETE FROM outbox_failures WHERE instance_key = ? AND entry_id = ?"
_RUN = "SELECT input, texts, user_id FROM agent_runs WHERE run_id = ? AND tenant_id = ?"
_USER = "SELECT name, locale, timezone FROM users WHERE tenant_id = ? AND user_id = ?"
_CALL = """
SELECT data FROM run_events WHERE run_id = ? AND tenant_id = ? AND kind = 'tool_called'
  AND json_extract(data, '$.turn') = ? AND json_extract(data, '$.index') = ? ORDER BY seq LIMIT 1
"""
_RECEIPT = "SELECT tenant_id FROM erasure_receipts WHERE receipt_id = ?"
_CREDIT = "UPDATE error_ledger SET settled_by = ? WHERE error_id = ? AND state = 'replayed' AND settled_by IS NULL"
_PARKS_ITSELF: frozenset[Stage] = frozenset(("consolidation", "erasure", "reindexing", "backup", "evaluation", "cron"))
"""Stages whose parts park the error again themselves when a replay fails."""


@dataclass(frozen=True, slots=True)
class ReplayPorts:
    """What replays work with. step: does a step of the daily brief, and returns what it did. backup: continues a
    backup or a restore of a tenant, by its id.
    """

    stores: Stores
    ingestion: Callable[[Scope], Ingestion]
    evaluation: Callable[[], Runner]
    demotion: Callable[[], Demotion]
    backup: Callable[[str, str], Awaitable[BackupJob]]
    step: Callable[[str], Awaitable[object]]
    call_tool: CallTool


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What a replay did. error: the entry after it. outcome: what the part that owns the work reported."""

    error: ParkedError
    outcome: Mapping[str, object] | None

    def to_json(self) -> dict[str, object]:
        """Return the replay as the HTTP answer has it."""
        return {"error": self.error.to_json(), "outcome": self.outcome}


@dataclass(frozen=True, slots=True)
class _Done:
    """What a part did. done: whether nothing is left of the error."""

    outcome: Mapping[str, object]
    done: bool = True


class Replaying:
    """Replays the errors of one deployment's ledger."""

    def __init__(self, ports: ReplayPorts) -> None:
        self._ports = ports
        self._sql = ports.stores.sql
        self._clock = ports.stores.clock

    async def replay(self, error_id: str, by: str) -> ReplayOutcome:
        """Do the work of a parked error again; return what happened, also if it failed again. by: who asks for it.

        An error that is not parked is returned as it is, without an outcome.
        Raises: NotFound (code `no_such_error`); Conflict (code `not_replayable`) for what nothing can do again; Unavailable
            when D1 does not answer.
        """
        error = await find_error(self._sql, error_id)
        if error.state != "parked":
            return ReplayOutcome(error, None)
        try:
            done = await self._again(error)
        except (Conflict, NoSuchTool) as failure:
            if failure.code == "not_replayable":
                raise
            return await self._failed(error, failure)
        except RetainError as failure:
            return await self._failed(error, failure)
        if done.done:
            place = (error.tenant_id, error.stage, error.concerns)
            await settle(self._sql, self._clock(), place, by=by)
            await self._sql.run(_CREDIT, by, error_id)
        return ReplayOutcome(await find_error(self._sql, error_id), done.outcome)

    async def _failed(self, error: ParkedError, failure: RetainError) -> ReplayOutcome:
        if error.stage not in _PARKS_ITSELF:
            await park(self._sql, Trouble(error.stage, error.concerns, failure.code, self._clock(), error.tenant_id))
        outcome = {"code": failure.code, "message": failure.message}
        return ReplayOutcome(await find_error(self._sql, error.error_id), outcome)

    async def _again(self, error: ParkedError) -> _Done:
        stores, tenant_id, concerns = self._ports.stores, error.tenant_id, error.concerns
        match error.stage:
            case "outbox":
                return await self._owed(concerns)
            case "vectors":
                await stores.indexer().settle(concerns)
                return _Done({"settled": concerns})
            case "documents":
                await DocumentIndex(stores.sql, stores.index, stores.clock).settle(tenant_id)
                return _Done({"settled": tenant_id})
            case "ingest":
                job = await Jobs(stores.sql, stores.clock).get(tenant_id, concerns)
                job = job if job.state == "completed" else await self._ports.ingestion(job.scope).work(concerns)
                return _Done(job.to_json(), job.state == "completed")
            case "run":
                return await self._run(error)
            case "tool":
                return await self._tool(error)
            case "consolidation":
                consolidated = await consolidate(stores)
                return _Done(consolidated.to_json(), consolidated.failed == 0)
            case "demotion":
                return _Done({"item": await self._ports.demotion().look_again(tenant_id, concerns)})
            case "erasure":
                return await self._erasure(concerns)
            case "reindexing":
                reindexing = Reindexing(stores)
                index = await reindexing.job(tenant_id, concerns)
                index = index if index.state == "completed" else await reindexing.advance(tenant_id)
                return _Done(index.to_json(), index.state == "completed")
            case "backup":
                backup = await self._ports.backup(tenant_id, concerns)
                return _Done(backup.to_json(), backup.state == "completed")
            case "evaluation":
                progress = await self._ports.evaluation().advance(tenant_id, concerns)
                return _Done({"state": progress.run.state}, progress.run.state == "completed")
            case "cron":
                done = await self._ports.step(concerns)
                return _Done({"step": done}, not (isinstance(done, Mapping) and "error" in done))
            case "learning" | "case" | "request":
                raise _not_replayable("what it would be done again from is gone")

    async def _owed(self, concerns: str) -> _Done:
        key, _, entry = concerns.rpartition("#")
        place = (key, int(entry))
        rows = (await self._sql.run(_OWED, *place)).rows
        if not rows or rows[0]["statement"] not in STATEMENTS:
            raise _not_replayable("the row that was owed is no longer kept")
        values = tuple(read_own_json(rows[0]["parameters"]))
        again = STATEMENTS[rows[0]["statement"]], values
        try:
            await self._sql.batch([(_STILL_OWED, place), again, (_WRITTEN, place)])
        except ConstraintViolated:
            if not (await self._sql.run(_OWED, *place)).rows:
                raise _not_replayable("the row that was owed is no longer kept") from None
            raise
        return _Done({"written": rows[0]["statement"]})

    async def _run(self, error: ParkedError) -> _Done:
        """Run the agent again on the same input, once for each attempt that is counted."""
        rows = (await self._sql.run(_RUN, error.concerns, error.tenant_id)).rows
        asked = read_own_json(rows[0]["input"]) if rows and rows[0]["texts"] != "removed" else {}
        if "input" not in asked or error.agent_type is None or error.instance_id is None:
            raise _not_replayable("the run's input is no longer kept")
        if asked.get("prior"):
            raise _not_replayable("the conversation that the run's caller brought is not kept")
        request = RunRequest(
            asked["input"],
            asked.get("metadata") or {},
            f"replay-{error.error_id}-{error.attempts}",
            user=await self._user(error.tenant_id, rows[0]["user_id"]),
            by=acting_principal(),
        )
        identity = instance_of(error.tenant_id, error.agent_type, error.instance_id)
        report = (await InstanceClient(self._ports.stores.instances, identity).run(request)).to_json()
        if report["status"] in ("failed", "cancelled"):
            failed = report.get("error")
            code = str(failed["code"]) if isinstance(failed, Mapping) else error.code
            await park(self._sql, Trouble("run", error.concerns, code, self._clock(), error.tenant_id))
        return _Done(report, report["status"] == "completed")

    async def _user(self, tenant_id: str, user_id: str | None) -> User | None:
        if user_id is None:
            return None
        rows = (await self._sql.run(_USER, tenant_id, user_id)).rows
        return User(user_id, **rows[0]) if rows else User(user_id)

    async def _tool(self, error: ParkedError) -> _Done:
        run_id, turn, index = error.concerns.split(".")
        rows = (await self._sql.run(_CALL, run_id, error.tenant_id, int(turn), int(index))).rows
        if not rows:
            raise _not_replayable("the call's arguments are no longer kept")
        called = read_own_json(rows[0]["data"])
        try:
            status, _ = await self._ports.call_tool(
                error.tenant_id, called["name"], called["arguments"], error.concerns
            )
        except NoSuchTool as failure:
            raise _not_replayable(
                "only calls of the gateway's tools can be made again outside of their run"
            ) from failure
        outcome: dict[str, Json] = {"tool": called["name"], "upstream_status": status}
        if status >= 400:
            await park(self._sql, Trouble("tool", error.concerns, "upstream_status", self._clock(), error.tenant_id))
        return _Done(outcome, status < 400)

    async def _erasure(self, receipt_id: str) -> _Done:
        with everywhere():  # that of a tenant is parked on the first database, wherever the tenant lives
            rows = (await self._sql.run(_RECEIPT, receipt_id)).rows
        if not rows:
            raise _not_replayable("the receipt is no longer kept")
        tenant_id, erasure = rows[0]["tenant_id"], Erasure(self._ports.stores)
        with in_tenant(tenant_id):
            outcome = await erasure.resume(await erasure.receipt(tenant_id, receipt_id))
        return _Done({"state": outcome.receipt.state}, outcome.retry_after_ms is None)


def _not_replayable(why: str) -> Conflict:
    return Conflict(f"the error cannot be replayed: {why}", code="not_replayable")
