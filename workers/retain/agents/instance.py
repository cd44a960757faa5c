"""One living agent: what an `AgentRuntime` Durable Object does, without the platform.

A run is recorded before it starts, logged step by step, and resumed by the alarm when a crash interrupted it. One run is
under way at a time; one that waits for an answer lets others go on, and continues when the instance is free. What is to
outlive the object goes to D1 through the outbox.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from retain import outbox as outbox_module
from retain.agents.execution.control import Control
from retain.agents.execution.executor import LEASE_MS, Execution
from retain.agents.execution.following import Following
from retain.agents.execution.live_text import LiveText
from retain.agents.execution.loop import RunLoop
from retain.agents.identity import InstanceIdentity, identity_of
from retain.agents.instance_ports import InstancePorts
from retain.agents.runs import tables
from retain.agents.runs.journal import Journal, OpenRun
from retain.errors import Conflict, Misconfigured, RetainError, Unavailable
from retain.lifecycle.terms import Term
from retain.memory import working as working_module
from retain.memory.procedures.procedural import ProceduralMemory
from retain.memory.working import WorkingMemory
from retain.outbox import Outbox

WAIT_S = 0.25
WAIT_TURNS = 100
"""How long, and how often, a second call with the same idempotency key waits for the first one's end."""
CANCEL_WAIT_TURNS = 20
"""How often a cancellation looks whether the run has stopped."""
IDLE_MS = 24 * 3600 * 1000
"""After how long without a run the object's working state is cleared."""

_log = logging.getLogger(__name__)


class Instance:
    """One agent instance. Made anew whenever the object wakes up; its state is in the object's SQLite."""

    def __init__(self, identity: InstanceIdentity, ports: InstancePorts) -> None:
        self._identity = identity
        self._ports = ports
        self._active = False
        for schema in (*tables.SCHEMA, outbox_module.SCHEMA, working_module.SCHEMA):
            ports.local.run(schema)
        scope = identity.scope
        self._outbox = Outbox(ports.local, ports.sql, tables.STATEMENTS, ports.clock, identity.key)
        live = LiveText()
        self._journal = Journal(ports.local, self._outbox, ports.clock, scope, identity.instance_id, live.ring)
        self._working = WorkingMemory(ports.local, ports.kv, ports.clock, scope.tenant_id, identity.instance_id)
        self._procedures = ProceduralMemory(
            scope, self._house, identity.instance_id, ports.local, ports.sql, self._outbox, ports.clock
        )
        self._execution = Execution(identity, ports, self._journal, self._working, self._procedures, live)
        self._control = Control(self._journal, self._execution, ports.clock)
        self._following = Following(self._journal, live)

    async def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run the agent on an input and return the result, or what the run waits for.

        With an idempotency key that was used before, the first result is returned: at once, after waiting for it, or
        after finishing the interrupted run. A run that goes on for too long answers `running`, one that waits for a
        person `waiting`; then the instance is free for other runs.
        Raises: Conflict (code `instance_busy`) while another run is under way, (code `idempotency_key_reused`) when the
            key came with another request; QuotaExceeded; LimitExceeded; Unavailable; Misconfigured (code
            `wrong_instance`) for a request that is for another instance.
        """
        known = self._known(request)
        if known is not None:
            standing = self._journal.standing(known)
            if standing["status"] != "running":
                return standing
            if self._active:
                return await self._awaited(known)
        async with self._busy():
            await self._execution.resume_interrupted()
            if known is not None:
                return self._journal.standing(known)
            loop, run = await self._opened(request)
            await self._execution.finish(loop, run)
            return self._journal.standing(run.run_id)

    async def start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a run that goes on by itself, whoever follows it, and return how it stands.

        Idempotent by its key. Raises: as `run`.
        """
        known = self._known(request)
        if known is not None:
            return self._journal.standing(known)
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._ports.background(self._begun(request, opened))
        return self._journal.standing(await opened)

    async def show(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a run's result, or how it stands. Raises: NotFound (code `no_such_run`)."""
        return self._journal.standing(str(request["run_id"]))

    async def follow(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what happened in a run behind a place. See `Following.follow`."""
        return await self._following.follow(request)

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer what a run asks: {"run_id", "call", "approved", "by", "reason"}. It goes on when the instance is free.

        The answer is durable when this returns how the run stands. Raises: as `Control.answer`.
        """
        run_id = str(request["run_id"])
        try:
            self._control.answer(
                run_id,
                str(request["call"]),
                approved=bool(request["approved"]),
                by=str(request["by"]),
                reason=request.get("reason"),
            )
        finally:  # a question that turns out to be expired lets the run go on as well
            await self._schedule()
            self._ports.background(self._go_on())
        return self._journal.standing(run_id)

    async def cancel(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Stop a run: {"run_id", "by", "reason"}. It stops before its next side effect.

        The wish is durable when this returns. Answers the result, when the run stops within five seconds or had ended;
        else how it stands. Idempotent. Raises: NotFound (code `no_such_run`).
        """
        run_id = await self._control.cancel(request)
        if run_id is None:
            return {"status": "unknown"}
        await self._schedule()
        if not self._active:
            await self._go_on()
        return await self._awaited(run_id, CANCEL_WAIT_TURNS)

    async def cancel_call(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Stop the run with an idempotency key, or keep it from beginning: {"idempotency_key", "by", "reason"}.

        As `cancel`; status `unknown` for a run that is not here yet.
        """
        return await self.cancel(request)

    async def wake(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Let a run go on that waits for a delegate: {"run_id"}. Idempotent. Raises: NotFound (code `no_such_run`)."""
        self._control.wake(str(request["run_id"]))
        await self._schedule()
        self._ports.background(self._go_on())
        return {}

    async def record_outcome(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Learn what came of a run: {"run_id", "task_type", "workflow_id", "score"}.

        Answers what is believed of the workflow now, None when the object does not hold it. Idempotent; another score
        takes the place of the first. Raises: as `ProceduralMemory.record_outcome`.
        """
        learned = await self._procedures.record_outcome(
            str(request["run_id"]), str(request["task_type"]), str(request["workflow_id"]), request["score"]
        )
        await self._schedule()
        self._ports.background(self._flush())
        return {"posterior": None if learned is None else {"alpha": learned.alpha, "beta": learned.beta}}

    async def describe(self, limit: int = 50) -> dict[str, Any]:
        """Return the turn state, the newest log entries and the working keys."""
        turns, log = self._journal.recent(limit)
        return {
            "instance_id": self._identity.instance_id,
            "turn_state": [
                {name: row[name] for name in ("run_id", "status", "turn", "created_at_ms", "updated_at_ms")}
                for row in turns
            ],
            "run_log": [
                {
                    **{name: row[name] for name in ("run_id", "seq", "turn", "kind", "at_ms")},
                    "data": json.loads(row["data"]),
                }
                for row in log
            ],
            "working": self._working.all(),
            "procedures": {
                task_type: {name: {"alpha": belief.alpha, "beta": belief.beta} for name, belief in beliefs.items()}
                for task_type, beliefs in self._procedures.posteriors().items()
            },
        }

    async def on_alarm(self) -> None:
        """Finish what a crash interrupted, write what is owed, clear what is idle, and set the next alarm."""
        self._control.let_due_go_on()
        await self._resume()
        if await self._outbox.flush() and self._idle():
            await self._working.clear()
            self._journal.forget()
        await self._schedule()

    async def erase(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Forget what the object itself holds: everything, or the runs and working keys that name a term.

        request: {"term"?: text}. What is owed to D1 is dropped with everything else; before a term is looked for, it is
        written, so that nothing that names it arrives there later. Idempotent. After everything was erased, the object
        does not know who it is until it is called again.
        Raises: Conflict (code `instance_busy`) while a run is under way or, for a term, interrupted; Unavailable when
            D1 or KV did not answer. Then the call is to be repeated.
        """
        text = request.get("term")
        if self._active or (text is not None and self._journal.running()):
            raise Conflict("the instance is busy with a run; try again", code="instance_busy")
        self._active = True
        try:
            if text is not None:
                names = Term.of(text).in_stored
                if not await self._outbox.flush():
                    raise Unavailable("the instance owes D1 what it did; try again", code="outbox_waits")
                await self._working.erase(names)
                self._journal.erase(names)
                self._ports.background(self._flush())
                return {"everything": False}
            await self._working.clear()
            await self._outbox.discard()
            self._journal.erase(None)
            self._ports.local.run("DELETE FROM identity")
            return {"everything": True}
        finally:
            self._active = False

    def _house(self) -> str | None:
        return self._ports.catalogue.agent(self._identity.agent_type).house

    def _known(self, request: Mapping[str, Any]) -> str | None:
        """Return the run that was asked for with the request's key. Raises: Conflict; Misconfigured."""
        if identity_of(request) != self._identity:
            raise Misconfigured("the object belongs to another instance", code="wrong_instance")
        key = request.get("idempotency_key")
        row = self._journal.find_by_key(key) if key else None
        if row is None:
            return None
        if row["request_hash"] != _digest(request):
            raise Conflict("the idempotency key was used for another request", code="idempotency_key_reused")
        return str(row["run_id"])

    async def _opened(self, request: Mapping[str, Any]) -> tuple[RunLoop, OpenRun]:
        await self._outbox.flush()
        loop, run = await self._execution.open(request, _digest(request))
        self._ports.background(self._flush())
        return loop, run

    async def _begun(self, request: Mapping[str, Any], opened: asyncio.Future[str]) -> None:
        """Carry out a run in the background; say in `opened` its id, or what kept it from being opened."""
        try:
            async with self._busy():
                await self._execution.resume_interrupted()
                loop, run = await self._opened(request)
                opened.set_result(run.run_id)
                await self._execution.finish(loop, run)
        except RetainError as error:
            if opened.done():
                raise
            opened.set_exception(error)

    @asynccontextmanager
    async def _busy(self) -> AsyncIterator[None]:
        """Hold the instance for one run; then let those go on that were answered meanwhile.

        Raises: Conflict (code `instance_busy`).
        """
        if self._active:
            raise Conflict("the instance is busy with another run; try again", code="instance_busy")
        self._active = True
        try:
            yield
        finally:
            self._active = False
            await self._schedule()
            self._ports.background(self._flush())
        if self._journal.running():
            self._ports.background(self._go_on())

    async def _go_on(self) -> None:
        """Carry out what was answered, unless another run is under way: it lets them go on when it ends."""
        await self._resume()
        await self._flush()

    async def _resume(self) -> None:
        if self._active:
            return
        self._active = True
        try:
            await self._execution.resume_interrupted()
        except RetainError as error:
            # The run stays open and the alarm is set again: the platform gives up an alarm that fails six times.
            _log.warning("an interrupted run waits", extra={"code": error.code})
        finally:
            self._active = False

    async def _awaited(self, run_id: str, turns: int = WAIT_TURNS) -> dict[str, Any]:
        """Return how a run stands that another call is carrying out, as soon as it is not under way, or after a while."""
        for _ in range(turns):
            if run_id not in self._journal.running():
                break
            await self._ports.sleep(WAIT_S)
        return self._journal.standing(run_id)

    async def _flush(self) -> None:
        await self._outbox.flush()
        await self._schedule()

    def _idle(self) -> bool:
        turns, _ = self._journal.recent(1)
        return not self._active and bool(turns) and self._ports.clock() - turns[0]["updated_at_ms"] >= IDLE_MS

    async def _schedule(self) -> None:
        """Set the alarm for the next thing that is due: an interrupted run, an owed write, or idleness."""
        now = self._ports.clock()
        due: list[int] = []
        if self._active or self._journal.running():
            due.append(now + LEASE_MS)
        waiting = self._journal.next_due_ms()
        if waiting is not None:
            due.append(max(waiting, now + 1000))
        owed = self._outbox.next_due_ms()
        if owed is not None:
            due.append(max(owed, now + 1000))
        turns, _ = self._journal.recent(1)
        if turns and not due:
            due.append(turns[0]["updated_at_ms"] + IDLE_MS)
        if due:
            await self._ports.alarm.set(min(due))


def _digest(request: Mapping[str, Any]) -> str:
    """Return what tells a request from another one with its key."""
    return hashlib.sha256(json.dumps([request["input"], request.get("metadata")], sort_keys=True).encode()).hexdigest()
