import asyncio
from typing import TypeVar

_T = TypeVar("_T")

class PyodideFuture(asyncio.Future[_T]): ...
class WebLoop(asyncio.BaseEventLoop): ...
