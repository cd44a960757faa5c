from collections.abc import Awaitable, Mapping
from typing import Any

import js
from cloudflare_bindings import DurableContext, Env

class Request:
    url: str
    js_object: js.Request
    def __init__(self, url: str, *, method: str = ..., headers: Mapping[str, str] = ..., body: str = ...) -> None: ...
    def text(self) -> Awaitable[str]: ...

class Response:
    def __init__(self, body: str, status: int = ..., headers: Mapping[str, str] = ...) -> None: ...

class WorkerEntrypoint:
    ctx: Any
    env: Env
    def __init__(self, ctx: Any, env: Env) -> None: ...

class DurableObject:
    ctx: DurableContext
    env: Env
    def __init__(self, ctx: DurableContext, env: Env) -> None: ...

def import_from_javascript(module_name: str) -> Any: ...
def wait_until(promise: Awaitable[object]) -> None: ...
