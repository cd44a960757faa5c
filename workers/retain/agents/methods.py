"""The methods of an instance as other isolates call them: JSON in, JSON out.

This is the one place where JSON becomes a typed request and a typed answer becomes JSON. `InstanceClient` is the other side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from retain.agents.calls.answers import Erased
from retain.agents.calls.requests import (
    AnswerRequest,
    CancelCallRequest,
    CancelRequest,
    DescribeRequest,
    EraseRequest,
    FollowRequest,
    ForkRequest,
    NamedRun,
    OutcomeRequest,
    RedeliverRequest,
)
from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.schedule import NamedSchedule, NewSchedule
from retain.agents.identity import identity_of
from retain.agents.instance import Instance
from retain.errors import Misconfigured
from retain.json_text import Json, JsonObject


class _JsonAnswer(Protocol):
    def to_json(self) -> dict[str, Json]: ...


_Request = TypeVar("_Request")
_Act = Callable[[Instance, JsonObject], Awaitable[JsonObject]]


@dataclass(frozen=True, slots=True)
class InstanceMethod:
    """One method. known_only: refused if the object was never called, so that a query writes nothing."""

    act: _Act
    known_only: bool = False

    async def call(self, instance: Instance, content: JsonObject) -> JsonObject:
        """Call the method and return its answer. content: the request, and what names the instance.

        Raises: InvalidInput (code `invalid_request`); Misconfigured (code `wrong_instance`) for a request to
            another instance; what the method raises.
        """
        if identity_of(content) != instance.identity:
            raise Misconfigured("the object belongs to another instance", code="wrong_instance")
        return await self.act(instance, content)


def _typed(read: Callable[[JsonObject], _Request], act: Callable[[Instance, _Request], Awaitable[_JsonAnswer]]) -> _Act:
    async def call(instance: Instance, content: JsonObject) -> JsonObject:
        return (await act(instance, read(content))).to_json()

    return call


async def _cancel_call(instance: Instance, content: JsonObject) -> JsonObject:
    report = await instance.cancel_call(CancelCallRequest.from_json(content))
    return {"status": "unknown"} if report is None else report.to_json()


async def _fork(instance: Instance, content: JsonObject) -> JsonObject:
    return (await instance.start(instance.forks.request(ForkRequest.from_json(content)))).to_json()


async def _redeliver(instance: Instance, content: JsonObject) -> JsonObject:
    return (await instance.deliveries.again(RedeliverRequest.from_json(content))).to_json()


async def _schedule(instance: Instance, content: JsonObject) -> JsonObject:
    return (await instance.schedules.create(NewSchedule.from_json(content))).to_json()


async def _change_schedule(instance: Instance, content: JsonObject) -> JsonObject:
    return (await instance.schedules.change(NamedSchedule.from_json(content))).to_json()


async def _delete_schedule(instance: Instance, content: JsonObject) -> JsonObject:
    await instance.schedules.delete(NamedSchedule.from_json(content))
    return {}


async def _wake(instance: Instance, content: JsonObject) -> JsonObject:
    await instance.wake(NamedRun.from_json(content))
    return {}


METHODS: Mapping[str, InstanceMethod] = {
    "run": InstanceMethod(_typed(RunRequest.from_json, Instance.run)),
    "start": InstanceMethod(_typed(RunRequest.from_json, Instance.start)),
    "repeated": InstanceMethod(_typed(RunRequest.from_json, Instance.repeated), known_only=True),
    "fork": InstanceMethod(_fork, known_only=True),
    "show": InstanceMethod(_typed(NamedRun.from_json, Instance.show), known_only=True),
    "follow": InstanceMethod(_typed(FollowRequest.from_json, Instance.follow), known_only=True),
    "answer": InstanceMethod(_typed(AnswerRequest.from_json, Instance.answer), known_only=True),
    "cancel": InstanceMethod(_typed(CancelRequest.from_json, Instance.cancel), known_only=True),
    "cancel_call": InstanceMethod(_cancel_call),
    "wake": InstanceMethod(_wake, known_only=True),
    "redeliver": InstanceMethod(_redeliver),
    "schedule": InstanceMethod(_schedule),
    "change_schedule": InstanceMethod(_change_schedule),
    "delete_schedule": InstanceMethod(_delete_schedule),
    "record_outcome": InstanceMethod(_typed(OutcomeRequest.from_json, Instance.record_outcome)),
    "describe": InstanceMethod(_typed(DescribeRequest.from_json, Instance.describe), known_only=True),
    "erase": InstanceMethod(_typed(EraseRequest.from_json, Instance.erase)),
}


def forgot_itself(answer: JsonObject) -> bool:
    """Return whether an answer of `erase` reports that the object no longer knows who it is."""
    return answer == Erased(everything=True).to_json()
