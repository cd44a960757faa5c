"""An instance as its callers see it: typed requests and answers over the port of living agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from retain.agents.calls.answers import News
from retain.agents.calls.report import RunReport, report_from_json
from retain.agents.calls.requests import (
    AnswerRequest,
    CancelCallRequest,
    CancelRequest,
    DescribeRequest,
    EraseRequest,
    FollowRequest,
    ForkRequest,
    NamedRun,
    RedeliverRequest,
)
from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.schedule import NamedSchedule, NewSchedule
from retain.agents.identity import InstanceIdentity
from retain.json_text import Json, JsonObject
from retain.ports import AgentInstances


class _Request(Protocol):
    def to_json(self) -> dict[str, Json]: ...


@dataclass(frozen=True, slots=True)
class InstanceClient:
    """Calls one instance. Every method raises what the instance raised, and Unavailable when it cannot be reached."""

    instances: AgentInstances
    identity: InstanceIdentity

    async def run(self, request: RunRequest) -> RunReport:
        """Run the agent. See `Instance.run`."""
        return report_from_json(await self._call("run", request))

    async def start(self, request: RunRequest) -> RunReport:
        """Start a run in the background. See `Instance.start`."""
        return report_from_json(await self._call("start", request))

    async def repeated(self, request: RunRequest) -> RunReport:
        """Return the run that an earlier request with the same key began. See `Instance.repeated`."""
        return report_from_json(await self._call("repeated", request))

    async def fork(self, request: ForkRequest) -> RunReport:
        """Start a run in the background that begins with the turns of another one. See `Forks.request`."""
        return report_from_json(await self._call("fork", request))

    async def show(self, run_id: str) -> RunReport:
        """Return a run's result, or its state so far."""
        return report_from_json(await self._call("show", NamedRun(run_id)))

    async def follow(self, request: FollowRequest) -> News:
        """Return what happened in a run. See `Following.follow`."""
        return News.from_json(await self._call("follow", request))

    async def answer(self, request: AnswerRequest) -> RunReport:
        """Answer what a run asks. See `Instance.answer`."""
        return report_from_json(await self._call("answer", request))

    async def cancel(self, request: CancelRequest) -> RunReport:
        """Stop a run. See `Instance.cancel`."""
        return report_from_json(await self._call("cancel", request))

    async def cancel_call(self, request: CancelCallRequest) -> RunReport | None:
        """Stop the run of a call, or keep it from starting. See `Instance.cancel_call`."""
        answer = await self._call("cancel_call", request)
        return report_from_json(answer) if "run_id" in answer else None

    async def wake(self, run_id: str) -> None:
        """Resume a run that waits for a delegate. See `Instance.wake`."""
        await self._call("wake", NamedRun(run_id))

    async def describe(self, request: DescribeRequest) -> JsonObject:
        """Return the instance's description as JSON."""
        return await self._call("describe", request)

    async def redeliver(self, request: RedeliverRequest) -> JsonObject:
        """Send a message to a webhook again; return the delivery as JSON."""
        return await self._call("redeliver", request)

    async def schedule(self, new: NewSchedule) -> JsonObject:
        """Create a schedule; return it as JSON. See `Schedules.create`."""
        return await self._call("schedule", new)

    async def change_schedule(self, named: NamedSchedule) -> JsonObject:
        """Pause or resume a schedule, or let the object rebuild it; return it as JSON. See `Schedules.change`."""
        return await self._call("change_schedule", named)

    async def delete_schedule(self, named: NamedSchedule) -> None:
        """Delete a schedule. See `Schedules.delete`."""
        await self._call("delete_schedule", named)

    async def erase(self) -> None:
        """Forget everything. See `Instance.erase`."""
        await self._call("erase", EraseRequest())

    async def _call(self, method: str, request: _Request) -> JsonObject:
        return await self.instances.call(self.identity.key, method, {**self.identity.to_json(), **request.to_json()})
