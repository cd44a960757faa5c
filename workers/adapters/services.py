"""Living agents and Workers AI as ports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyodide.ffi import JsException

from adapters.failures import unavailable
from retain import errors
from retain.log import bound
from retain.rpc import opened


class DurableInstances:
    """`AgentInstances` through a Durable Object namespace."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def call(self, name: str, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
        stub = self._namespace.getByName(name)
        try:
            envelope = await getattr(stub, method)(json.dumps({"request_id": bound("request_id"), **request}))
        except JsException as error:
            raise unavailable("agent instance", error) from error
        return opened(envelope)


class WorkersAi:
    """`AiRunner` on the Workers AI binding."""

    def __init__(self, env: Any) -> None:
        self._env = env

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        try:
            binding = self._env.AI
        except AttributeError as error:
            raise errors.Misconfigured("this deployment has no AI binding", code="no_ai_binding") from error
        try:
            answer: Mapping[str, object] = await binding.run(model, dict(inputs))
        except JsException as error:
            raise unavailable("Workers AI", error) from error
        return answer
