"""A client of Retain: `Retain` waits for answers, `AsyncRetain` is the same for asyncio.

The types of bodies and answers are in `retain_client.api.models`; they are generated from the OpenAPI document.
"""

from __future__ import annotations

from retain_client.api.models.run_result import RunResult
from retain_client.api.models.run_standing import RunStanding
from retain_client.asynchronous.client import AsyncRetain
from retain_client.asynchronous.pages import AsyncPages
from retain_client.asynchronous.run_stream import AsyncRunStream
from retain_client.errors import RetainError
from retain_client.retries import Retries
from retain_client.server_events import StreamedEvent
from retain_client.synchronous.client import Retain
from retain_client.synchronous.pages import Pages
from retain_client.synchronous.run_stream import RunStream
from retain_client.version import __version__

__all__ = [
    "AsyncPages",
    "AsyncRetain",
    "AsyncRunStream",
    "Pages",
    "Retain",
    "RetainError",
    "Retries",
    "RunResult",
    "RunStanding",
    "RunStream",
    "StreamedEvent",
    "__version__",
]
