"""A deployment that answers what a test lines up."""

from __future__ import annotations

from collections.abc import Callable

import httpx

Answer = tuple[int, object] | httpx.Response
Run = Callable[..., tuple[int, str, str]]


class Server:
    """Answers by path, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[httpx.Request] = []

    def connect(self, url: str) -> httpx.Client:
        headers = {"cf-access-client-id": "service"}
        return httpx.Client(base_url=url, headers=headers, transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if not self.answers.get(request.url.path):
            raise httpx.ConnectError("refused")
        answer = self.answers[request.url.path].pop(0)
        if isinstance(answer, httpx.Response):
            return answer
        status, body = answer
        return httpx.Response(status, text=body) if isinstance(body, str) else httpx.Response(status, json=body)
