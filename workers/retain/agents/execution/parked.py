"""Waiting runs that are rebuilt from D1 when their instance has lost its storage.

A run that waits for a person or for a delegate is parked: D1 has its request and context (`parked_runs`) and, as of every
run, its events. So is a run in its instance's queue, which has no events. The copy is removed from D1 before the run
continues, so a run whose calls may have been made since is never rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.run_request import RunRequest
from retain.agents.duties.overdue import ask_each
from retain.agents.identity import InstanceIdentity, claimed, instance_of, require_claimed
from retain.agents.instance_ports import InstancePorts
from retain.agents.runs.erased_run import CloseErasedRun
from retain.agents.runs.events import CancelRequested
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.owed import UnparkRun
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Unavailable
from retain.json_text import Json
from retain.outbox import Outbox
from retain.ports import AgentInstances, Clock, Row, Sql

# The rows of an erased user or tenant are gone only when the erasure reaches them.
_OF_INSTANCE = """
FROM parked_runs p WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?
  AND NOT EXISTS (SELECT 1 FROM erased_tenants e WHERE e.tenant_id = p.tenant_id AND p.run_id <= e.last_run_id)
  AND NOT EXISTS (SELECT 1 FROM erased_users e
                  WHERE e.tenant_id = p.tenant_id AND e.user_id = p.user_id AND p.run_id <= e.last_run_id)
"""
_RUN = f"SELECT * {_OF_INSTANCE} AND run_id = ?"
_BY_KEY = f"SELECT run_id {_OF_INSTANCE} AND idempotency_key = ?"
_EVENTS = "SELECT seq, turn, kind, data, at_ms FROM run_events WHERE tenant_id = ? AND run_id = ? ORDER BY seq"

# Each is due again, so that one that fails comes after all others, an hour later.
_OVERDUE = """
UPDATE parked_runs SET due_at_ms = ?1 WHERE run_id IN (
  SELECT run_id FROM parked_runs WHERE due_at_ms < ?2 ORDER BY due_at_ms, run_id LIMIT ?3)
RETURNING run_id, tenant_id, agent_type, instance_id
"""
LATE_MS = 3_600_000
"""How long after a wait should have ended the daily work asks the instance for it."""
OVERDUE_AT_ONCE = 50
_REPEATED = "the instance lost its storage, and another run has the repeated request"

_log = logging.getLogger(__name__)


REPETITION = "repetition"
"""Who cancels a lost run whose request runs as another one by now."""
Requeue = Callable[[str, RunRequest, int, CancelRequested | None], bool]


class ParkedRuns:
    """Rebuilds the waiting runs of one instance."""

    def __init__(
        self,
        identity: InstanceIdentity,
        ports: InstancePorts,
        outbox: Outbox,
        journal: Journal,
        agent: OwnAgent,
        requeue: Requeue,
        key_taken: Callable[[str | None, str], bool],
        set_alarm: Callable[[], Awaitable[None]],
    ) -> None:
        """requeue: queues a run again that was queued at a time, and cancels it if asked to; returns False if the object
        knows it.
        key_taken: whether another run of the object than this one, queued or not, has a key.
        """
        self._identity = identity
        self._local = ports.local
        self._sql = ports.sql
        self._clock = ports.clock
        self._outbox = outbox
        self._journal = journal
        self._agent = agent
        self._requeue = requeue
        self._key_taken = key_taken
        self._set_alarm = set_alarm

    async def restore(self, run_id: str) -> None:
        """Rebuild a run that waits, or is queued, and that the object does not know; set its alarm.

        If its request was repeated since and runs as another run, it is cancelled, by `REPETITION`: what that does is not
        to be done twice. One that is another user's than the instance serves by now has ended as cancelled.
        Raises: Unavailable; then nothing was written.
        """
        if await self._rebuilt(run_id):
            await self._set_alarm()

    async def _rebuilt(self, run_id: str) -> bool:
        if self._journal.runs.knows(run_id):
            return False
        if not await self._outbox.flush():  # the object may owe D1 the run's erasure
            raise Unavailable("the instance has not written everything to D1 yet; try again", code="outbox_waits")
        parked, events = await self._sql.batch(
            [(_RUN, (*_place(self._identity), run_id)), (_EVENTS, (self._identity.scope.tenant_id, run_id))]
        )
        if not parked.rows or self._journal.runs.knows(run_id):
            return False
        row = parked.rows[0]
        if [event["seq"] for event in events.rows] != list(range(1, int(row["seq"]) + 1)):
            _log.error("a parked run and its timeline disagree", extra={"run_id": run_id})
            return False
        run = OpenRun.stored(run_id, row["request"], row["context"])
        if self._journal.served_user() not in (None, run.request.user_id):
            self._local.atomically(partial(self._close, run_id))
            await self._outbox.flush()
            return False
        if run.agent is not None:
            await self._agent.restore(run.agent)
            if self._journal.runs.knows(run_id):
                return False
        repeated = self._key_taken(run.request.idempotency_key, run_id)
        cancelled = CancelRequested(max(run.state.turn, 1), REPETITION, _REPEATED) if repeated else None
        if repeated:  # the key is the other run's
            run = replace(run, request=replace(run.request, idempotency_key=None))
        if not events.rows:
            return self._requeue(run_id, run.request, int(row["parked_at_ms"]), cancelled)
        self._local.atomically(partial(self._write, run, row, events.rows))
        if cancelled is not None:
            self._journal.append(self._journal.load(run_id), cancelled)
        _log.warning("a waiting run was rebuilt", extra={"run_id": run_id})
        return True

    async def restore_by_key(self, idempotency_key: str | None) -> None:
        """Rebuild the waiting run with this key, if an object without any run may have lost it. As `restore`."""
        if idempotency_key is None or self._journal.runs.newest(1):
            return
        found = await self._sql.run(_BY_KEY, *_place(self._identity), idempotency_key)
        if found.rows:
            await self.restore(found.rows[0]["run_id"])

    def _close(self, run_id: str) -> None:
        """End a run that the instance cannot have again, in D1 alone."""
        closed = (UnparkRun(run_id), CloseErasedRun.of_another_user(run_id, self._clock()))
        self._outbox.add(self._identity.scope.tenant_id, *closed)

    def _write(self, run: OpenRun, row: Row, events: list[Row]) -> None:
        self._journal.runs.restore(
            run,
            turn=int(events[-1]["turn"]),
            due_ms=int(row["due_at_ms"]),
            created_at_ms=int(events[0]["at_ms"]),
            now_ms=int(row["parked_at_ms"]),
        )
        for event in events:
            self._journal.log.restore(
                run.run_id,
                seq=int(event["seq"]),
                turn=int(event["turn"]),
                kind=event["kind"],
                data=event["data"],
                at_ms=int(event["at_ms"]),
            )
        if run.request.user is not None:
            self._journal.serve(run.request.user.id)


async def require_known(ports: InstancePorts, identity: InstanceIdentity, run_id: Json) -> None:
    """Refuse a call to an object that was never called, so that a query writes nothing.

    An object that has lost its storage is known by its runs that are parked in D1. run_id: the run that the call names.
    Raises: NotFound (code `no_such_instance`); Unavailable.
    """
    if claimed(ports.local) is not None:
        return
    if not isinstance(run_id, str) or not (await ports.sql.run(_RUN, *_place(identity), run_id)).rows:
        require_claimed(ports.local)


async def ask_for_overdue(sql: Sql, instances: AgentInstances, clock: Clock) -> dict[str, int]:
    """Ask the instances for runs whose wait should have ended an hour ago; return how many were asked for, and failed.

    An instance that has lost its storage has lost its alarm as well: asked for the run, it rebuilds both.
    """
    now = clock()

    async def ask(row: Row) -> None:
        instance = instance_of(row["tenant_id"], row["agent_type"], row["instance_id"])
        await InstanceClient(instances, instance).show(row["run_id"])

    rows = (await sql.run(_OVERDUE, now, now - LATE_MS, OVERDUE_AT_ONCE)).rows
    return await ask_each(rows, ask, clock, "a run that is overdue", "run_id")


def _place(identity: InstanceIdentity) -> tuple[str, str, str]:
    return identity.scope.tenant_id, identity.agent_type, identity.instance_id
