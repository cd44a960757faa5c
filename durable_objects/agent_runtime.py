"""`AgentRuntime`: the Durable Object of one agent instance. A thin shell around `retain.agents.instance.Instance`.

Every public method is an RPC method: it takes JSON text and answers an envelope (`retain.rpc`), because the platform
keeps only the text of an error. What agents need is imported by the first call: the isolate of a proxy never pays for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from assembly.root import assembly_of
from retain import errors
from retain.log import bind
from retain.rpc import answer, refusal
from workers import DurableObject

if TYPE_CHECKING:
    from retain.agents.identity import InstanceIdentity
    from retain.agents.instance import Instance

_log = logging.getLogger("retain.agent_runtime")
_NAMED = ("request_id", "tenant_id", "agent_type", "instance_id", "run_id")
"""What every line of a call's log names."""


class AgentRuntime(DurableObject):
    """One living agent."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._living_as: tuple[InstanceIdentity, Instance] | None = None

    async def run(self, request: str) -> str:
        """Run the agent. request: JSON as `Instance.run` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.run(content))

    async def start(self, request: str) -> str:
        """Begin a run that goes on by itself. request: JSON as `Instance.start` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.start(content))

    async def show(self, request: str) -> str:
        """Return how a run stands."""
        return await self._enveloped(request, lambda instance, content: instance.show(content), known_only=True)

    async def follow(self, request: str) -> str:
        """Return what happened in a run behind a place, waiting for it. request: as `Following.follow` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.follow(content), known_only=True)

    async def answer(self, request: str) -> str:
        """Answer what a run asks. request: JSON as `Instance.answer` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.answer(content), known_only=True)

    async def cancel(self, request: str) -> str:
        """Stop a run. request: JSON as `Instance.cancel` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.cancel(content), known_only=True)

    async def cancel_call(self, request: str) -> str:
        """Stop the run that a call of another instance began, or will yet begin. request: as `Instance.cancel` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.cancel_call(content))

    async def wake(self, request: str) -> str:
        """Let a run go on that waits for a delegate."""
        return await self._enveloped(request, lambda instance, content: instance.wake(content), known_only=True)

    async def record_outcome(self, request: str) -> str:
        """Learn what came of a run. request: JSON as `Instance.record_outcome` takes it."""
        return await self._enveloped(request, lambda instance, content: instance.record_outcome(content))

    async def describe(self, request: str) -> str:
        """Return the turn state, the newest log entries and the working keys. An object that was never called stays so."""
        return await self._enveloped(request, lambda instance, _: instance.describe(), known_only=True)

    async def erase(self, request: str) -> str:
        """Forget everything, or what names a term. request: JSON as `Instance.erase` takes it."""
        return await self._enveloped(request, self._erase)

    async def alarm(self, alarm_info: Any = None) -> None:  # noqa: ARG002
        """Do what is due. An object that was never called has nothing to do."""
        from retain.agents.identity import claimed

        identity = claimed(assembly_of(self.env).instances.ports(self.ctx.storage).local)
        if identity is not None:
            scope = identity.scope
            with bind(tenant_id=scope.tenant_id, agent_type=scope.agent_type, instance_id=identity.instance_id):
                await self._living(identity).on_alarm()

    async def _erase(self, instance: Instance, request: dict[str, Any]) -> dict[str, Any]:
        done = await instance.erase(request)
        if done["everything"]:
            self._living_as = None  # the object has to claim its name again
        return done

    async def _enveloped(
        self,
        request: str,
        act: Callable[[Instance, dict[str, Any]], Awaitable[dict[str, Any]]],
        *,
        known_only: bool = False,
    ) -> str:
        """Act and return the envelope. known_only: refuse when the object was never called, and write nothing."""
        from retain.agents.identity import identity_of, require_claimed

        content = json.loads(request)
        named = {name: content[name] for name in _NAMED if content.get(name) is not None}
        with bind(**named):
            try:
                identity = identity_of(content)
                if known_only:
                    require_claimed(assembly_of(self.env).instances.ports(self.ctx.storage).local)
                return answer(await act(self._living(identity), content))
            except errors.RetainError as error:
                return refusal(error)
            except Exception:
                _log.exception("unexpected error in an instance")
                return refusal(errors.RetainError("an unexpected error occurred; it was logged"))

    def _living(self, identity: InstanceIdentity) -> Instance:
        """Return the instance. Raises: Misconfigured when the object belongs to another one."""
        if self._living_as is None or self._living_as[0] != identity:
            from retain.agents.identity import claim
            from retain.agents.instance import Instance

            ports = assembly_of(self.env).instances.ports(self.ctx.storage)
            claim(ports.local, identity)
            self._living_as = (identity, Instance(identity, ports))
        return self._living_as[1]
