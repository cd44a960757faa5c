"""Production's modules and the SDK, which only the Workers runtime can import.

By `import_module`, so that type checkers on the host, where neither exists, let them be.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

bindings: Any = import_module("bindings")
models: Any = import_module("assembly.models")
entry: Any = import_module("entry")
js: Any = import_module("js")

_sdk: Any = import_module("workers")
Request: Any = _sdk.Request
Response: Any = _sdk.Response
DurableObject: Any = _sdk.DurableObject
WorkerEntrypoint: Any = _sdk.WorkerEntrypoint
