"""A client of the administrator's side whose transport answers as the Worker would, for the owner `ada`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import httpx

from retain.admin.context import AdminContext
from retain.admin.routes import ROUTER
from retain.errors import RetainError
from retain.http import Request, problem


def connected(**parts: object) -> Callable[[str], httpx.Client]:
    """Return what connects a command. parts: what the routes that it calls work with, by their names in the context."""
    context = cast(AdminContext, SimpleNamespace(**parts))

    def answered(asked: httpx.Request) -> httpx.Response:
        path, body = asked.url.raw_path.decode().partition("?")[0], asked.content.decode()
        headers = {"content-type": "application/json"}
        request = Request(asked.method, path, dict(asked.url.params), headers, body, "host", "test", caller="ada")
        try:
            answer = asyncio.run(ROUTER.handle(context, request))
        except RetainError as error:
            answer = problem(error, "test")
        return httpx.Response(answer.status, text=str(answer.body))

    return lambda url: httpx.Client(base_url=url, transport=httpx.MockTransport(answered))
