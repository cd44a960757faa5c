from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar, final

_T = TypeVar("_T")

class JsProxy:
    def to_py(self) -> Any: ...

class JsException(Exception):
    name: str

@final
class JsNull: ...

jsnull: Final[JsNull]

class PyProxy(Generic[_T]):
    def destroy(self) -> None: ...

def to_js(value: object, /, *, dict_converter: Callable[..., object] = ...) -> JsProxy: ...
def run_sync(awaitable: Awaitable[_T], /) -> _T: ...
def create_proxy(value: _T, /) -> PyProxy[_T]: ...
