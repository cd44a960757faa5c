"""Delegation: how an instance reaches the instances that its runs hand work to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import RunReport, RunResult, RunStanding
from retain.agents.calls.requests import CancelCallRequest, CancelRequest, DescribeRequest
from retain.agents.calls.run_request import RunReference, RunRequest
from retain.agents.identity import InstanceIdentity, instance_of
from retain.agents.runs.events import ToolCalled
from retain.agents.runs.open_run import OpenRun
from retain.agents.tools.built_in import CallContext
from retain.errors import InvalidInput, NotFound, Unavailable
from retain.models.retry import report_retry
from retain.ports import AgentInstances

DELEGATE = "delegate"
"""The name of the tool that hands work to another agent."""
ATTEMPTS = 3
"""How often an unreachable instance is called: an object that died is alive again at the next call."""
ERASURE = "erasure"
"""Who cancels the delegate of a run that is erased."""
CALLER = "caller"
"""Who cancels the delegate of a run that is given up, or of a call that its agent may make no longer."""

_log = logging.getLogger(__name__)


class Delegation:
    """Runs, cancels and wakes other agents for the runs of one instance.

    A delegate works in an instance of its own, named after the run that called it, so that a second call in the same run
    reaches the same instance. delegates: returns the agents that the agent of a run may call.
    """

    def __init__(
        self, instances: AgentInstances, caller: InstanceIdentity, delegates: Callable[[OpenRun], Collection[str]]
    ) -> None:
        self._instances = instances
        self._caller = caller
        self._delegates = delegates

    async def run(
        self, agent: str, request: RunRequest, run_id: str, waited_for: RunReference | None = None
    ) -> RunResult | RunReference:
        """Run an agent for a call of the run `run_id`; return its result, or the run when it waits for a person.

        With the request's key every attempt reaches the same run, which continues where it was. waited_for: the run for
        which an earlier attempt waited. It is never begun again, and one that cannot be reached is still waited for.
        Raises: Unavailable when the instance cannot be reached; NotFound (code `no_such_run`) when the run that was waited
            for is there no longer.
        """
        delegate = self._delegate_of(run_id, agent)
        ask = partial(delegate.run, request) if waited_for is None else partial(_known, delegate, waited_for)
        failures = 0
        while True:
            try:
                report = await ask()
            except Unavailable as error:
                failures += 1
                if failures == ATTEMPTS:
                    if waited_for is not None:
                        return waited_for
                    raise
                _log.warning("retrying a delegation", extra={"instance": delegate.identity.key, "code": error.code})
                report_retry(error, 0)
                continue
            ended = _ended(report, delegate.identity)
            if ended is not None:  # otherwise an earlier attempt of this call is still running it
                return ended
            ask = partial(delegate.run, request)  # which waits up to 25 seconds; the caller's deadline ends the call

    async def cancel(self, run: OpenRun) -> RunResult | None:
        """Cancel the delegate that the run's pending call waits for, if the run is to stop. Idempotent.

        Returns the delegate's result, None without a delegate and while it still stops.
        Raises: Unavailable, then call it again; NotFound when the run's own agent no longer exists.
        """
        cancelled = run.state.cancel
        if cancelled is None:
            return None
        report = await self._cancel_called(run, cancelled.by, cancelled.reason)
        if report is None:  # whatever its agent may call by now
            report = await self._cancel_waited_for(run, cancelled.by, cancelled.reason)
        return report if isinstance(report, RunResult) else None

    async def abandon(self, run: OpenRun, by: str, reason: str | None = None) -> None:
        """Cancel the delegate that works for a run, or for which it waits or did last, that ends without it. Idempotent.

        One that is gone with its instance is left. Raises: Unavailable, then call it again.
        """
        with suppress(NotFound):
            if run.state.waited_for is None:
                await self._cancel_called(run, by, reason)
            else:
                await self._cancel_waited_for(run, by, reason)

    def is_refused(self, run: OpenRun) -> bool:
        """Return whether the run's pending call is one of a delegate that its agent may not call, or no longer."""
        agent = _called(run)
        return agent is not None and agent not in self._delegates(run)

    async def _cancel_waited_for(self, run: OpenRun, by: str, reason: str | None) -> RunReport | None:
        """Cancel the delegate for which the run waits, or did last. None without one, and for one that is gone."""
        delegate = run.state.waited_for
        if delegate is None:
            return None
        with suppress(NotFound):
            client = self._client(delegate.agent_type, delegate.instance_id)
            return await client.cancel(CancelRequest(delegate.run_id, by, reason))
        return None

    async def _cancel_called(self, run: OpenRun, by: str, reason: str | None) -> RunReport | None:
        """Cancel the delegate that the run's pending call began, or keep it from beginning. None without one."""
        pending, agent = run.state.pending, _called(run)
        if not isinstance(pending, ToolCalled) or agent is None:
            return None
        if self.is_refused(run) and not await self._works(run.run_id, agent):
            return None
        request = CancelCallRequest(CallContext.of(run.run_id, pending).key, by, reason)
        return await self._delegate_of(run.run_id, agent).cancel_call(request)

    async def _works(self, run_id: str, agent: str) -> bool:
        """Return whether an agent works or worked for a run, whatever the run's own agent may call by now."""
        try:
            await self._delegate_of(run_id, agent).describe(DescribeRequest(1))
        except (InvalidInput, NotFound):
            return False
        return True

    async def wake(self, parent: RunReference) -> None:
        """Resume a suspended run whose delegate has ended. If that fails, the run checks on the delegate after a while."""
        await self._client(parent.agent_type, parent.instance_id).wake(parent.run_id)

    def reference(self, run_id: str) -> RunReference:
        """Return the reference by which a delegate knows the run that called it."""
        return RunReference(run_id, self._caller.agent_type, self._caller.instance_id)

    def _delegate_of(self, run_id: str, agent: str) -> InstanceClient:
        """Return the instance in which an agent works for a run."""
        return self._client(agent, f"{run_id}.{agent}")

    def _client(self, agent_type: str, instance_id: str) -> InstanceClient:
        tenant_id = self._caller.scope.tenant_id
        return InstanceClient(self._instances, instance_of(tenant_id, agent_type, instance_id))


def _called(run: OpenRun) -> str | None:
    """Return the agent that the run's pending call names, None when it is not a call of a delegate."""
    pending = run.state.pending
    if not isinstance(pending, ToolCalled) or pending.name != DELEGATE:
        return None
    agent = pending.arguments.get("agent")
    return agent if isinstance(agent, str) else None


async def _known(delegate: InstanceClient, run: RunReference) -> RunReport:
    """Return the report of a run that has begun. Raises: NotFound (code `no_such_run`) when it was removed; Unavailable."""
    try:
        return await delegate.show(run.run_id)
    except NotFound as error:
        message = "the other agent's run was removed before it answered; what it has done stays done"
        raise NotFound(message, code="no_such_run") from error


def _ended(report: RunReport, delegate: InstanceIdentity) -> RunResult | RunReference | None:
    """Return the result, or the run when it waits; None while it is under way."""
    match report:
        case RunResult():
            return report
        case RunStanding(status="waiting"):
            return RunReference(report.run_id, delegate.agent_type, delegate.instance_id)
        case _:
            return None
