"""Production's modules and the SDK, which only the Workers runtime can import. On the host, `typings/` declares them."""

from __future__ import annotations

import js

import bindings
import entry
from assembly import models
from workers import DurableObject, Request, Response, WorkerEntrypoint

__all__ = ["DurableObject", "Request", "Response", "WorkerEntrypoint", "bindings", "entry", "js", "models"]
