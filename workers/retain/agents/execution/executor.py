"""Runs of one instance from beginning to end: context, loop, resumption."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.tokens import Estimate
from retain.agents.calls.user import User
from retain.agents.conversations.before_run import Before, ContextRecall, read_before
from retain.agents.conversations.past import PastReading, bound_of, last_words
from retain.agents.conversations.summary import ThreadBound
from retain.agents.definitions import AgentDefinition
from retain.agents.duties.instance_alarm import InstanceAlarm
from retain.agents.execution.deadline import Deadlines, allowed_ms
from retain.agents.execution.ledger_notes import basis_now, basis_of
from retain.agents.execution.live_text import LiveText
from retain.agents.execution.loop import RunLoop
from retain.agents.files.sent_files import SentFiles
from retain.agents.forks.forks import Forks
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.learning.run_learning import RunLearning
from retain.agents.occasion import occasion_of
from retain.agents.recollection import query_text
from retain.agents.runs.context import AssembledContext, Remembered, assemble
from retain.agents.runs.events import RunFailed, RunRecovered, ToolCalled
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun, VersionReference
from retain.agents.runs.run_state import Policy
from retain.agents.toolbox import Toolbox
from retain.agents.tools.delegation import CALLER, Delegation
from retain.agents.users.known_user import UserQuery
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Conflict, InvalidInput, NotFound, Unavailable
from retain.errors.codes import Code, ForeignCode
from retain.log import bind
from retain.memory.facts import ProfileQuery
from retain.memory.procedures.procedural import Choice, ProceduralMemory
from retain.memory.working import WorkingMemory
from retain.models.chat import ChatModel, ToolSpec
from retain.tenants.quotas import asking, quotas_in, quotas_of

MAX_RESUMPTIONS = 5
"""How often a run that makes no progress is resumed while it calls a function tool, which may be what kills its object."""
MAX_OTHER_RESUMPTIONS = 20
"""How often it is resumed while it calls anything else: another run of the same process may be what kills it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can begin. agent: the version with which it was prepared, None for an agent of the repository.

    record: records it. Raises: LimitExceeded; then nothing of the run is recorded.
    """

    run_id: str
    definition: AgentDefinition
    agent: VersionReference | None
    loop: RunLoop
    record: Callable[[], OpenRun]


class Execution:
    """Opens and finishes the runs of one instance. The caller ensures that one is under way at a time.

    learning: what learns from runs that have ended. deadlines: of the run that is executed.
    """

    def __init__(
        self,
        identity: InstanceIdentity,
        ports: InstancePorts,
        alarm: InstanceAlarm,
        journal: Journal,
        working: WorkingMemory,
        procedures: ProceduralMemory,
        delegation: Delegation,
        live: LiveText,
        agent: OwnAgent,
    ) -> None:
        self._identity = identity
        self._ports = ports
        self._alarm = alarm
        self._agent = agent
        self._journal = journal
        self._working = working
        self._procedures = procedures
        self._delegation = delegation
        self._live = live
        self._forks = Forks(journal)
        self.deadlines = Deadlines(journal, ports.clock)
        self._toolbox = Toolbox(identity, ports, working, delegation)
        self.learning = RunLearning(ports, journal, agent, self._toolbox.semantic)

    def check(self, request: RunRequest, users: Sequence[str | None] = ()) -> None:
        """Check what can be known of a run before it begins. users: of the runs that begin before it.

        Raises: NotFound (code `unknown_agent`); Conflict (code `wrong_user`); InvalidInput (code `unknown_task_type`,
            `unknown_time_zone`).
        """
        definition = self._agent.now()
        self._require_user(request.user_id, next((user for user in users if user is not None), None))
        _task_type(definition, request)
        occasion_of(request.user, self._ports.clock(), self._ports.time_zones)

    async def prepare(self, request: RunRequest, run_id: str, *, counted: bool = False) -> Prepared:
        """Return a new run with its context; nothing of it is recorded yet.

        It has the version of its agent that is current in D1 meanwhile. counted: whether the tenant's quota of runs has it
        already. Raises: as `Instance.run`.
        """
        self._require_user(request.user_id)
        await self._agent.ready()
        if request.fork is not None:
            await self.admit(counted=counted)
            return await self._forked(request, run_id)
        prepared, confirmed = await self._prepared(request, run_id, counted=counted)
        if not confirmed:  # the agent has another version than the object knew
            prepared, _ = await self._prepared(request, run_id, counted=counted)
        return prepared

    async def admit(self, *, counted: bool = False) -> None:
        """Check in one request to D1 that another run may begin, and which version of the agent is current.

        counted: as in `prepare`. Raises: NotFound (code `unknown_agent`, `agent_deleted`); QuotaExceeded (code
        `run_quota`, `token_quota`); Unavailable.
        """
        ports, tenant_id, of_agent = self._ports, self._identity.scope.tenant_id, self._agent.asking()
        if of_agent:
            quotas, version = await ports.sql.batch([asking(tenant_id, ports.clock()), *of_agent])
            quotas_in(quotas.rows[0]).check_run(counted=counted)
            self._agent.confirmed(version.rows)
        else:
            (await quotas_of(ports.sql, tenant_id, ports.clock())).check_run(counted=counted)

    async def _forked(self, request: RunRequest, run_id: str) -> Prepared:
        definition, agent = self._agent.now(), self._agent.version()
        loop, model, _ = await self._loop(definition, request)
        renewed = partial(basis_now, definition=definition, model=model.name, now_ms=self._ports.clock())
        record = self._forks.beginning(request, run_id, renewed, agent, definition.model.accepts)
        return Prepared(run_id, definition, agent, loop, record)

    async def _prepared(self, request: RunRequest, run_id: str, *, counted: bool) -> tuple[Prepared, bool]:
        """Return a run with the version that is known, and whether D1 has confirmed that it is current."""
        definition, agent = self._agent.now(), self._agent.version()
        loop, model, specs = await self._loop(definition, request)
        procedure = await self._procedure(definition, request, run_id)
        estimate = Estimate.of(model.name)
        bound = bound_of(definition, estimate, estimate.specs(specs))
        before = await self._before(definition, request, bound, counted=counted)
        user = before.user or request.user
        context = self._context(definition, request, user, procedure, estimate, specs, before)
        basis = basis_of(definition, context, model.name, self._ports.clock())
        summary = before.past.new_summary
        record = partial(
            self._journal.open, run_id, request, context, basis=basis, summary=summary, agent=agent, known=user
        )
        return Prepared(run_id, definition, agent, loop, record), self._agent.confirmed(before.of_agent)

    async def begin(self, prepared: Prepared) -> tuple[RunLoop, OpenRun]:
        """Record a prepared run at once, then set the alarm that resumes it after a crash.

        Raises: LimitExceeded; then nothing of the run is recorded.
        """
        self._agent.keep(prepared.agent)
        run = prepared.record()
        await self._alarm.set(min(self._alarm.lease_ms(), self._ports.clock() + allowed_ms(prepared.definition)))
        return prepared.loop, run

    def _require_user(self, user_id: str | None, other: str | None = None) -> None:
        """Refuse a run for anybody but the user whom the instance serves: its notes and its log are theirs.

        other: whom it will serve if it serves nobody yet.
        """
        served = self._journal.served_user() or other
        if served is not None and user_id != served:
            raise Conflict(
                "the instance serves a user, whom the run must name"
                if user_id is None
                else "the instance serves another user",
                code="wrong_user",
            )

    async def resume_interrupted(self) -> None:
        """Finish the runs that a crash interrupted or whose wait has ended.

        Only interruptions since a run's last progress count. Raises: Unavailable; then a run still has to be resumed.
        """
        for run_id in self._journal.runs.running():
            run = self._journal.load(run_id)
            resumed = self._journal.runs.count_resumption(run_id)
            _log.warning("resuming a run", extra={"run_id": run_id, "resumed": resumed})
            most = self._most_resumptions(run)
            if resumed > most:
                why = f"the run was interrupted {most} times without making progress"
                await self._give_up(run, "resumed_too_often", why)
                continue
            try:
                await self._resume(run, resumed)
            except Unavailable:  # as when a delegate cannot be reached to stop it
                self._journal.runs.discount_resumption(run_id)
                raise

    async def _resume(self, run: OpenRun, resumed: int) -> None:
        try:
            loop = await self._loop_of(run)
        except NotFound as error:
            # The agent or one of its tools was removed meanwhile: the run cannot continue, and must not block others.
            await self._give_up(run, error.code, error.message)
        else:
            await self.finish(loop, self._recovered(run, resumed))

    async def finish(self, loop: RunLoop, run: OpenRun) -> None:
        """Execute a run until it ends or waits; wake the run that waits for it, if there is one."""
        with bind(run_id=run.run_id):
            self._wake_caller(await loop.finish(run))

    def _wake_caller(self, run: OpenRun) -> None:
        """Wake the run that waits for a run, if there is one and the run has ended."""
        parent = run.request.parent
        if parent is not None and run.state.closed is not None and run.state.waited:
            self._ports.background(self._delegation.wake(parent))

    async def _loop_of(self, run: OpenRun) -> RunLoop:
        """Return the loop that executes the run. Raises: NotFound; Unavailable."""
        loop, _, _ = await self._loop(self._agent.of_run(run), run.request)
        return loop

    async def _procedure(self, definition: AgentDefinition, request: RunRequest, run_id: str) -> Choice | None:
        """Return the workflow that the run follows, None for an agent without any."""
        task_type = _task_type(definition, request)
        if task_type is None:
            return None
        return await self._procedures.select_workflow(task_type, definition.procedures[task_type], run_id)

    async def _before(
        self, definition: AgentDefinition, request: RunRequest, bound: ThreadBound | None, *, counted: bool
    ) -> Before:
        """Return what the run reads before it begins."""
        ports, now = self._ports, self._ports.clock()
        reading = PastReading.of(
            self._identity, definition, request.user_id, bound, now, prior=request.prior, counted=counted
        )
        user = UserQuery.of(self._identity.scope.tenant_id, request.user, ports.time_zones, now)
        recall = self._recall_into(definition, request, bound)
        return await read_before(
            ports.sql, reading, self._profile(definition, request), recall, self._agent.asking(), user
        )

    def _context(
        self,
        definition: AgentDefinition,
        request: RunRequest,
        user: User | None,
        procedure: Choice | None,
        estimate: Estimate,
        specs: Sequence[ToolSpec],
        before: Before,
    ) -> AssembledContext:
        past, profile = before.past, before.profile
        shown = {fact.id for fact in profile}
        records = [hit for hit in before.recalled.hits if hit.record.id not in shown]
        return assemble(
            definition,
            request.input,
            Remembered(past.thread, past.episodes, records, self._working.all(), profile, before.recalled.degraded),
            instance_id=self._identity.instance_id,
            occasion=occasion_of(user, self._ports.clock(), self._ports.time_zones),
            procedure=procedure,
            estimate=estimate,
            tools_tokens=estimate.specs(specs),
            attached=request.attachments,
        )

    def _recall_into(
        self, definition: AgentDefinition, request: RunRequest, bound: ThreadBound | None
    ) -> ContextRecall | None:
        """Return the recall into the run's context, None without one."""
        config, query = definition.memory_config, query_text(request.input)
        if not (query and config.long_term_enabled and config.recall in ("context", "both")):
            return None
        memory = self._toolbox.semantic(definition, request.user_id)
        return ContextRecall(memory, config, query, last_words(self._journal.runs, bound, request.prior))

    def _profile(self, definition: AgentDefinition, request: RunRequest) -> ProfileQuery | None:
        """Return what to read of the run's user, None if its definition wants nothing in the context."""
        config = definition.memory_config.profile
        if config is None or request.user is None:
            return None
        return ProfileQuery(self._toolbox.semantic(definition, request.user_id).view, config.records)

    async def _loop(
        self, definition: AgentDefinition, request: RunRequest
    ) -> tuple[RunLoop, ChatModel, list[ToolSpec]]:
        model = self._ports.chat(definition)
        tools = await self._toolbox.tools(definition, request)
        limits, budget = definition.limits, request.budget
        policy = Policy(
            max_turns=limits.max_turns,
            idempotent=frozenset(name for name, tool in tools.items() if tool.idempotent),
            approvals=self._toolbox.approvals(definition),
            max_tokens=_least(limits.run_tokens, budget.tokens),
            max_delegations=_least(limits.max_delegations, budget.delegations) or 0,
        )
        ports = self._ports
        sent = SentFiles(ports.attachments, self._identity.scope.tenant_id, request.user_id, ports.sending)
        own = (self._journal, self.deadlines)
        loop = RunLoop(definition, policy, *own, model, tools, self._delegation, self._live, ports.clock, sent)
        return loop, model, [tool.spec for tool in tools.values()]

    def _most_resumptions(self, run: OpenRun) -> int:
        pending = run.state.pending
        calls_function = isinstance(pending, ToolCalled) and self._ports.catalogue.has_function(pending.name)
        return MAX_RESUMPTIONS if calls_function else MAX_OTHER_RESUMPTIONS

    def _recovered(self, run: OpenRun, resumed: int) -> OpenRun:
        """Record in the run's log that it was interrupted. resumed: 0 for a run whose wait has ended."""
        known = run.state.recovered
        if resumed < 1 or (known is not None and known.times >= resumed):
            return run
        return self._journal.append(run, RunRecovered(run.state.turn, resumed))

    async def _give_up(self, run: OpenRun, code: Code | ForeignCode, message: str) -> None:
        """End a run as failed, and cancel the delegate for which it waits. Raises: Unavailable; then it is still open."""
        await self._delegation.abandon(run, CALLER, message)
        failed = RunFailed(len(run.state.turns), code, message)
        self._wake_caller(self._journal.close(run, failed))


def _task_type(definition: AgentDefinition, request: RunRequest) -> str | None:
    """Return the task type of a run, None for an agent without procedures."""
    if not definition.procedures:
        return None
    task_type = request.metadata.get("task_type", next(iter(definition.procedures)))
    if not isinstance(task_type, str) or task_type not in definition.procedures:
        raise InvalidInput("the agent has no procedures for this task type", code="unknown_task_type")
    return task_type


def _least(*bounds: int | None) -> int | None:
    """Return the lowest bound that is not None, or None."""
    return min((bound for bound in bounds if bound is not None), default=None)
