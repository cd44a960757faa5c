"""`pyodide.ffi`: values of JavaScript as Python sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class JsException(Exception):
    """An error of JavaScript. name: its kind, as `TimeoutError`. answered: the status of an answer that broke off."""

    answered: int

    def __init__(self, text: str, name: str = "Error") -> None:
        super().__init__(text)
        self.name = name


class JsProxy:
    """A value that JavaScript holds."""

    def to_py(self) -> Any:
        """Return it as a value of Python."""
        raise JsException("there is nothing to convert")


class JsNull:
    """JavaScript's null, which is not None."""

    def __bool__(self) -> bool:
        return False


jsnull = JsNull()


class Array(JsProxy):
    """An array."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)

    def to_py(self) -> list[Any]:
        return [_python(value) for value in self.values]


class PlainObject(JsProxy):
    """An object with properties: what the platform's functions take as options."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self.properties = dict(properties)

    def to_py(self) -> dict[str, Any]:
        return {name: _python(value) for name, value in self.properties.items()}


class ParsedObject(PlainObject):
    """An object that `JSON.parse` made: what is set on it becomes a property."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "properties":
            super().__setattr__(name, value)
        else:
            self.properties[name] = value


class JsMap(JsProxy):
    """A `Map`, which a dictionary becomes without a converter. The platform's functions read no options from it."""


class Buffer(JsProxy):
    """An `ArrayBuffer` or a `Uint8Array`."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def byteLength(self) -> int:
        """Return how many bytes it has."""
        return len(self.content)

    def to_bytes(self) -> bytes:
        """Return the bytes."""
        return self.content

    def to_py(self) -> memoryview:
        return memoryview(self.content)

    @property
    def buffer(self) -> Buffer:
        """The memory under it."""
        return self


class PyProxy:
    """A function of Python that JavaScript may call until it is destroyed."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function
        self.destroyed = False

    def __call__(self) -> None:
        """Call it. Of an error only the text remains, as on the platform."""
        if self.destroyed:
            raise JsException("this proxy was destroyed")
        try:
            self.function()
        except Exception as error:  # noqa: BLE001 -- JavaScript catches whatever is raised
            raise JsException(f"PythonError: {type(error).__name__}") from None

    def destroy(self) -> None:
        """Let JavaScript forget it."""
        self.destroyed = True


proxies: list[PyProxy] = []
"""Every proxy that was made: one that is not destroyed leaks."""


def create_proxy(function: Callable[[], None], /) -> PyProxy:
    """Return a function that JavaScript may keep."""
    proxies.append(PyProxy(function))
    return proxies[-1]


def to_js(value: Any, /, *, dict_converter: Callable[[Any], Any] | None = None) -> Any:
    """Return a value of Python as one of JavaScript."""
    match value:
        case bytes() | memoryview():
            return Buffer(bytes(value))
        case list() | tuple():
            return Array([to_js(one, dict_converter=dict_converter) for one in value])
        case dict():
            if dict_converter is None:
                return JsMap()
            return dict_converter([(name, to_js(one, dict_converter=dict_converter)) for name, one in value.items()])
        case None:
            return None  # undefined
        case _:
            return value


def options_of(value: Any) -> dict[str, Any]:
    """Return the properties of an object that the shell gave to the platform. Raises: JsException for anything else."""
    if not isinstance(value, PlainObject):
        raise JsException("options are not an object", "TypeError")
    return value.properties


def array_of(value: Any) -> list[Any]:
    """Return the values of an array that the shell gave to the platform. Raises: JsException for anything else."""
    if not isinstance(value, Array):
        raise JsException("not an array", "TypeError")
    return value.to_py()


def bytes_of(value: Any) -> bytes:
    """Return the content of a buffer that the shell gave to the platform. Raises: JsException for anything else."""
    if not isinstance(value, Buffer):
        raise JsException("not a buffer", "TypeError")
    return value.content


def _python(value: Any) -> Any:
    return value.to_py() if isinstance(value, JsProxy) else value


def can_run_sync() -> bool:
    """Return False: CPython cannot suspend a function that waits. Libraries of this process stay as they are."""
    return False


def run_sync(awaitable: object) -> object:
    """Refuse to wait, as Pyodide does where it cannot. Raises: RuntimeError."""
    raise RuntimeError("cannot stack switch")
