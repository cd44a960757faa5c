"""Living agents and Workers AI as ports."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import js
from pyodide.ffi import JsException, to_js

from adapters.deadline import within
from adapters.failures import unavailable
from adapters.web import stream_chunks
from retain import errors
from retain.json_text import JsonObject
from retain.limits.deadlines import AI_MS, INSTANCE_MS, RUN_CALL_MS, WRITER_MS
from retain.log import bound
from retain.rpc import opened

if TYPE_CHECKING:
    from cloudflare_bindings import DirectRateLimit, DurableNamespace, HasAi, RateLimit
    from js import StreamReader

_log = logging.getLogger("retain.bindings")


class DurableInstances:
    """`AgentInstances` through a Durable Object namespace."""

    def __init__(self, namespace: DurableNamespace) -> None:
        self._namespace = namespace

    async def call(self, name: str, method: str, request: JsonObject) -> JsonObject:
        stub = self._namespace.getByName(name)
        content = json.dumps({"request_id": bound("request_id"), **request})
        limit_ms = RUN_CALL_MS if method == "run" else INSTANCE_MS
        try:
            async with within(limit_ms, "the agent instance", "agent_instance_unavailable"):
                envelope = await getattr(stub, method)(content)
        except JsException as error:
            raise unavailable("agent instance", error, "agent_instance_unavailable") from error
        return opened(envelope)


class PlatformRates:
    """`RateLimiter` on the rate limiting binding, which counts in the memory of the location and asks no store.

    Source: https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit
    """

    def __init__(self, binding: RateLimit) -> None:
        self._binding: DirectRateLimit = getattr(binding, "_binding", None) or cast("DirectRateLimit", binding)

    async def allow(self, key: str) -> bool:
        try:
            outcome = await self._binding.limit(to_js({"key": key}, dict_converter=js.Object.fromEntries))
        except JsException as error:
            _log.warning("rate limit failed", extra={"cause": str(error)})
            return True
        return bool(outcome.success)


class DurableWriters:
    """`TenantWriters` through a Durable Object namespace: one object for each tenant, of its name."""

    def __init__(self, namespace: DurableNamespace) -> None:
        self._namespace = namespace

    async def call(self, tenant_id: str, method: str, request: JsonObject) -> JsonObject:
        stub = self._namespace.getByName(tenant_id)
        content = json.dumps({"request_id": bound("request_id"), **request})
        try:
            async with within(WRITER_MS, "the tenant's writer", "writer_unavailable"):
                envelope = await getattr(stub, method)(content)
        except JsException as error:
            raise unavailable("the tenant's writer", error, "writer_unavailable") from error
        return opened(envelope)


class WorkersAi:
    """`AiRunner` and, as `stream`, `AiStreamer` on the Workers AI binding."""

    def __init__(self, env: HasAi) -> None:
        self._env = env

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        async with within(AI_MS, "Workers AI", "workers_ai_unavailable"):
            answer: Mapping[str, object] = await self._run(model, inputs)
            return answer

    @asynccontextmanager
    async def stream(
        self, model: str, inputs: Mapping[str, object], *, silence_ms: int
    ) -> AsyncIterator[Mapping[str, object] | AsyncIterator[bytes]]:
        answer = await self._run(model, inputs)
        if isinstance(answer, Mapping):
            yield answer
            return
        reader = answer.getReader()
        try:
            yield stream_chunks(reader, silence_ms)
        finally:
            await _cancelled(reader)

    async def _run(self, model: str, inputs: Mapping[str, object]) -> Any:
        try:
            binding = self._env.AI
        except AttributeError as error:
            raise errors.Misconfigured("this deployment has no AI binding", code="no_ai_binding") from error
        try:
            return await binding.run(model, dict(inputs))
        except JsException as error:
            from retain.models.workers_ai import platform_failure  # not on the proxy's path

            _log.warning("Workers AI failed", extra={"cause": str(error)})
            raise platform_failure(str(error)) from error


async def _cancelled(reader: StreamReader) -> None:
    """Abandon the rest of a stream. A stream that has failed has none."""
    with suppress(JsException):
        await reader.cancel()
