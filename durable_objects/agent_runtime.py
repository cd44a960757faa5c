"""`AgentRuntime`: the Durable Object of one agent instance. A thin shell around `retain.agents.instance.Instance`.

Every public method is an RPC method: it takes JSON text and returns an envelope (`retain.rpc`), because the platform
keeps only the text of an error. The first call imports what agents need, so an isolate that only proxies never does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from assembly.root import assembly_of, set_alarm
from retain import errors
from retain.json_text import read_own_json
from retain.log import bind
from retain.rpc import answer, refusal
from workers import DurableObject

if TYPE_CHECKING:
    from retain.agents.identity import InstanceIdentity
    from retain.agents.instance import Instance
    from retain.json_text import JsonObject

_log = logging.getLogger("retain.agent_runtime")
_NAMED = ("request_id", "tenant_id", "agent_type", "instance_id", "run_id")
"""The fields that every log line of a call has."""
_REPEATED = 5
"""How often the platform has repeated an alarm when another one is set: it repeats one six times, and then drops it.

Source: https://developers.cloudflare.com/durable-objects/api/alarms/
"""
_AGAIN_MS = 5 * 60_000


class AgentRuntime(DurableObject):
    """One living agent."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._living_as: tuple[InstanceIdentity, Instance] | None = None

    async def run(self, request: str) -> str:
        """Run the agent. request: a `RunRequest` as JSON."""
        return await self._enveloped("run", request)

    async def start(self, request: str) -> str:
        """Start a run in the background. request: a `RunRequest` as JSON."""
        return await self._enveloped("start", request)

    async def repeated(self, request: str) -> str:
        """Return the run that an earlier request with the same key began. request: a `RunRequest` as JSON."""
        return await self._enveloped("repeated", request)

    async def fork(self, request: str) -> str:
        """Start a run in the background that begins with the turns of another one. request: a `ForkRequest` as JSON."""
        return await self._enveloped("fork", request)

    async def show(self, request: str) -> str:
        """Return a run's result, or its state so far."""
        return await self._enveloped("show", request)

    async def follow(self, request: str) -> str:
        """Return what happened in a run after a position, waiting for news. request: a `FollowRequest` as JSON."""
        return await self._enveloped("follow", request)

    async def answer(self, request: str) -> str:
        """Answer what a run asks. request: an `AnswerRequest` as JSON."""
        return await self._enveloped("answer", request)

    async def cancel(self, request: str) -> str:
        """Stop a run. request: a `CancelRequest` as JSON."""
        return await self._enveloped("cancel", request)

    async def cancel_call(self, request: str) -> str:
        """Stop the run that a call of another instance started, or will start. request: a `CancelCallRequest` as JSON."""
        return await self._enveloped("cancel_call", request)

    async def wake(self, request: str) -> str:
        """Resume a run that waits for a delegate."""
        return await self._enveloped("wake", request)

    async def redeliver(self, request: str) -> str:
        """Send a message to a webhook again. request: a `RedeliverRequest` as JSON."""
        return await self._enveloped("redeliver", request)

    async def schedule(self, request: str) -> str:
        """Create a schedule. request: a `NewSchedule` as JSON."""
        return await self._enveloped("schedule", request)

    async def change_schedule(self, request: str) -> str:
        """Pause or resume a schedule, or rebuild it. request: a `NamedSchedule` as JSON."""
        return await self._enveloped("change_schedule", request)

    async def delete_schedule(self, request: str) -> str:
        """Delete a schedule. request: a `NamedSchedule` as JSON."""
        return await self._enveloped("delete_schedule", request)

    async def record_outcome(self, request: str) -> str:
        """Learn a run's outcome. request: an `OutcomeRequest` as JSON."""
        return await self._enveloped("record_outcome", request)

    async def describe(self, request: str) -> str:
        """Return the turn state, the newest log entries and the working keys. Refused if the object was never called."""
        return await self._enveloped("describe", request)

    async def erase(self, request: str) -> str:
        """Forget everything, or what names a term. request: an `EraseRequest` as JSON."""
        return await self._enveloped("erase", request)

    async def alarm(self, alarm_info: Any = None) -> None:
        """Do what is due. Does nothing in an object that was never called.

        What is due stays due however long the deployment is unusable: with an invalid setting, or after a rollback.
        """
        try:
            await self._do_what_is_due()
        except Exception as failure:
            if getattr(alarm_info, "retryCount", 0) < _REPEATED:
                raise  # the platform repeats the alarm
            _log.warning("the alarm fails each time", extra={"code": getattr(failure, "code", "internal")})
            await set_alarm(self.ctx.storage, _AGAIN_MS)

    async def _do_what_is_due(self) -> None:
        from retain.agents.identity import claimed

        identity = claimed(assembly_of(self.env).instances.ports(self.ctx.storage).local)
        if identity is not None:
            scope = identity.scope
            named = {"tenant_id": scope.tenant_id, "agent_type": scope.agent_type, "instance_id": identity.instance_id}
            with bind(**named), assembly_of(self.env).located(scope.tenant_id):
                try:
                    await self._living(identity).on_alarm()
                except Exception as failure:
                    if not isinstance(failure, errors.RetainError):
                        assembly_of(self.env).note_failure("an instance's alarm", failure)
                    raise

    async def _enveloped(self, method: str, request: str) -> str:
        """Call a method of the instance and return the envelope of its answer."""
        content = read_own_json(request)
        named = {name: content[name] for name in _NAMED if content.get(name) is not None}
        with bind(**named), assembly_of(self.env).located(content.get("tenant_id")):
            try:
                return answer(await self._called(method, content))
            except errors.RetainError as error:
                return refusal(error)
            except Exception as failure:  # the edge of the object: the caller gets an envelope, the log the traceback
                _log.exception("unexpected error in an instance")
                assembly_of(self.env).note_failure(f"an instance's {method}", failure)
                return refusal(errors.RetainError("an unexpected error occurred; it was logged"))

    async def _called(self, method: str, content: JsonObject) -> JsonObject:
        """Call a method of the instance that the request names. Raises: as `InstanceMethod.call`; NotFound."""
        from retain.agents.execution.parked import require_known
        from retain.agents.identity import identity_of
        from retain.agents.methods import METHODS, forgot_itself

        identity = identity_of(content)
        if METHODS[method].known_only:
            ports = assembly_of(self.env).instances.ports(self.ctx.storage)
            await require_known(ports, identity, content.get("run_id"))
        result = await METHODS[method].call(self._living(identity), content)
        if method == "erase" and forgot_itself(result):
            self._living_as = None  # the object has to claim its name again
        return result

    def _living(self, identity: InstanceIdentity) -> Instance:
        """Return the instance. Raises: Misconfigured when the object belongs to another one."""
        if self._living_as is None or self._living_as[0] != identity:
            from retain.agents.identity import claim
            from retain.agents.instance import Instance

            ports = assembly_of(self.env).instances.ports(self.ctx.storage)
            claim(ports.local, identity)
            self._living_as = (identity, Instance(identity, ports))
        return self._living_as[1]
