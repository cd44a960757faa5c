"""Synchronous HTTP libraries in function tools: `requests` and all on urllib3, `urllib` and all on `http.client`.

A Worker has neither sockets nor XMLHttpRequest. Pyodide can suspend Python while a promise is pending (`run_sync`, by
WebAssembly's stack switching), so the libraries get both, on the tool's own client; everything else in the isolate
continues meanwhile. A library is changed when it is imported, and none is imported for it.
Source: https://pyodide.org/en/stable/usage/api/python-api/ffi.html#pyodide.ffi.run_sync
"""

# ruff: noqa: N802 -- the names of the browser's XMLHttpRequest
from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import js
from pyodide.ffi import can_run_sync, run_sync, to_js

from retain import errors
from retain.agents.tools.blocking import blocking_request
from retain.ports import HttpResponse


def prepare_libraries() -> None:
    """Make synchronous libraries usable in calls of function tools, where Python can wait. Idempotent."""
    if can_run_sync() and not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        js.XMLHttpRequest = XMLHttpRequest
        sys.meta_path.insert(0, _AfterImport())
        for name, change in _CHANGES.items():
            if name in sys.modules:
                change(sys.modules[name])


class XMLHttpRequest:
    """The part of the browser's XMLHttpRequest that libraries for Pyodide use, synchronous only.

    Redirects are not followed: the libraries do that, and leave out credentials where a redirect leads elsewhere.
    Source: https://xhr.spec.whatwg.org/
    """

    def __init__(self) -> None:
        self.timeout = 0
        self.responseType = ""
        self.responseURL = ""
        self.status = 0
        self.statusText = ""
        self._asked = ("GET", "")
        self._headers: dict[str, str] = {}
        self._charset = "utf-8"
        self._answer = HttpResponse(0, {}, b"")

    @classmethod
    def new(cls) -> XMLHttpRequest:
        """Return a new request, as Pyodide spells the constructor of a JavaScript class."""
        return cls()

    def open(self, method: str, url: str, asynchronous: bool = True) -> None:
        """Name what is asked. Raises: NotImplementedError for an asynchronous request."""
        if asynchronous:
            raise NotImplementedError("XMLHttpRequest sends synchronous requests only")
        self._asked = (method, url)

    def setRequestHeader(self, name: str, value: str) -> None:
        """Add a header."""
        self._headers[name] = f"{self._headers[name]}, {value}" if name in self._headers else value

    def overrideMimeType(self, kind: str) -> None:
        """Set how `responseText` is decoded."""
        self._charset = kind.partition("charset=")[2].strip() or "utf-8"

    def send(self, body: object = None) -> None:
        """Send the request and wait for the whole answer.

        Raises: a JsException with the browser's name when no answer came; RetainError for what is refused.
        """
        try:
            self._answer = _waited(*self._asked, self._headers, _bytes_of(body), self.timeout)
        except errors.Unavailable as error:
            raise _named(
                "TimeoutError" if error.code == "upstream_timeout" else "NetworkError", error.message
            ) from None
        self.status, self.responseURL = self._answer.status, self._asked[1]

    def getAllResponseHeaders(self) -> str:
        """Return the answer's headers, one per line."""
        return "".join(f"{name}: {value}\r\n" for name, value in self._answer.headers.items())

    def getResponseHeader(self, name: str) -> str | None:
        """Return a header, None for one that the answer lacks."""
        return self._answer.headers.get(name.lower())

    @property
    def responseText(self) -> str:
        """The body as text."""
        return self._answer.body.decode(self._charset, "replace")

    @property
    def response(self) -> object:
        """The body: a JavaScript buffer if `responseType` is "arraybuffer", else text."""
        if self.responseType != "arraybuffer":
            return self.responseText
        view: Any = to_js(self._answer.body)
        return view.buffer


def _waited(
    method: str, url: str, headers: Mapping[str, str], body: str | bytes | None, timeout_ms: int | None
) -> HttpResponse:
    """Send a request and wait for its answer. Raises: as `blocking_request` and its coroutine."""
    answer: HttpResponse = run_sync(blocking_request(method, url, headers, body, timeout_ms))
    return answer


def _bytes_of(body: object) -> str | bytes | None:
    if body is None or isinstance(body, str | bytes):
        return body
    if hasattr(body, "to_bytes"):
        return bytes(body.to_bytes())
    raise TypeError("a synchronous request's body must be text or bytes")


def _named(name: str, message: str) -> Any:
    """Return an error of JavaScript with this name, as the libraries expect it."""
    error: Any = js.Error.new(message)
    error.name = name
    return error


def _change_http_client(module: ModuleType) -> None:
    """Give the connections of `http.client` a wire instead of a socket."""
    from retain.agents.tools.wire import Wire

    def connect(connection: Any) -> None:
        scheme = "https" if isinstance(connection, module.HTTPSConnection) else "http"
        host = f"[{connection.host}]" if ":" in connection.host else connection.host
        port = "" if connection.port == connection.default_port else f":{connection.port}"
        timeout_ms = int(connection.timeout * 1000) if isinstance(connection.timeout, int | float) else None

        def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
            try:
                return _waited(method, url, headers, body, timeout_ms)
            except errors.Unavailable as error:
                kind = TimeoutError if error.code == "upstream_timeout" else ConnectionError
                raise kind(error.message) from None

        connection.sock = Wire(f"{scheme}://{host}{port}", send)

    module.HTTPConnection.connect = connect
    module.HTTPSConnection.connect = connect


def _change_urllib3(module: ModuleType) -> None:
    """Let urllib3 send by XMLHttpRequest, and not by `fetch`, which has no guard and no limit."""
    module.has_jspi = lambda: False  # type: ignore[attr-defined]
    module.is_in_node = lambda: False  # type: ignore[attr-defined]
    module._SHOWN_STREAMING_WARNING = True  # type: ignore[attr-defined]


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "http.client": _change_http_client,
    "urllib3.contrib.emscripten.fetch": _change_urllib3,
}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds the modules of `_CHANGES` where they are, and changes each after it was loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = _CHANGES.get(fullname)
        if change is None:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        spec = next((spec for finder in others if (spec := finder.find_spec(fullname, path, target))), None)
        if spec is not None and spec.loader is not None:
            loaded = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                loaded(module)
                change(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
