"""The gateway in the thinnest Worker that can hold it: a lower bound to compare the whole Worker with.

Its adapters are written only for speed: they use the platform's raw objects, without the SDK's wrappers, and do not
fully meet the ports' contracts. Most of the remaining cost is Pyodide's: each promise that Python awaits becomes a
future whose callbacks each take a turn of the event loop.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterator, Mapping
from typing import Any

import js  # noqa: TID251
from pyodide.ffi import JsException, jsnull, to_js  # noqa: TID251
from pyodide.webloop import PyodideFuture, WebLoop  # noqa: TID251

from retain.errors import RetainError, Unavailable
from retain.gateway.routes import Gateway
from retain.gateway.settings import GatewaySettings
from retain.http import Request, problem
from retain.identifiers import new_id
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse
from workers import WorkerEntrypoint  # noqa: TID251

_isolate: dict[str, Gateway] = {}


def _now_ms() -> int:
    return int(time.time() * 1000)


def _spare_turns() -> None:
    """Make each awaited promise cost one turn of the event loop instead of two.

    WebLoop adds a callback to every future, to count unfinished futures for a handler that is not set here.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, WebLoop) and "create_future" not in vars(loop):
        loop.create_future = functools.partial(PyodideFuture, loop=loop)


class _Headers(Mapping[str, str]):
    """Headers that are read one by one, on demand."""

    def __init__(self, headers: Any) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = self._headers.get(name)
        if value is jsnull:
            raise KeyError(name)
        return str(value)

    def __iter__(self) -> Iterator[str]:
        return iter([pair[0] for pair in self._headers])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Kv:
    def __init__(self, binding: Any) -> None:
        self._kv = binding

    async def get(self, key: str) -> str | None:
        value = await self._kv.get(key)
        return None if value is jsnull else value


class _Crypto:
    async def decrypt(self, key: bytes, sealed: bytes, associated: bytes) -> bytes:
        imported = await js.crypto.subtle.importKey("raw", to_js(key), "AES-GCM", False, to_js(["decrypt"]))
        algorithm = to_js(
            {"name": "AES-GCM", "iv": to_js(sealed[:12]), "additionalData": to_js(associated)},
            dict_converter=js.Object.fromEntries,
        )
        return bytes((await js.crypto.subtle.decrypt(algorithm, imported, to_js(sealed[12:]))).to_bytes())


async def _fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: str | bytes | None,
    timeout_ms: int,
    limit_bytes: int = MAX_RESPONSE_BYTES,  # noqa: ARG001 -- the leanest client reads whole answers
) -> HttpResponse:
    sent = js.Headers.new()
    for name, value in headers.items():
        sent.set(name, value)
    signal = js.AbortSignal.timeout(timeout_ms)
    try:
        response = await js.fetch(url, method=method, headers=sent, body=body, redirect="manual", signal=signal)
        content = (await response.arrayBuffer()).to_bytes()
    except JsException as error:
        raise Unavailable("no complete answer arrived", code="upstream_unreachable") from error
    return HttpResponse(response.status, _Headers(response.headers), content)


class Default(WorkerEntrypoint):
    """The Worker's entrypoint."""

    async def fetch(self, incoming: Any) -> Any:
        """Answer a tool call."""
        request = incoming.js_object
        path = request.url[request.url.index("/", 8) :]
        _spare_turns()
        request_id = new_id()
        try:
            if "gateway" not in _isolate:
                env = self.env._env
                settings = GatewaySettings(env.CREDENTIALS_KEY, allow_loopback=True)
                _isolate["gateway"] = Gateway(_Kv(env.KV), _fetch, _Crypto(), _now_ms, settings)  # type: ignore[arg-type]
            body = await request.text()
            headers = _Headers(request.headers)
            answer = await _isolate["gateway"].handle(Request(request.method, path, {}, headers, body, "", request_id))
        except RetainError as error:
            answer = problem(error, request_id)
        sent = js.Headers.new()
        for name, value in answer.headers.items():
            sent.set(name, value)
        sent.set("x-request-id", request_id)
        content = answer.body if isinstance(answer.body, str) else to_js(answer.body)
        return js.Response.new(content, status=answer.status, headers=sent)
