"""Contract suites: one module per port, run against every adapter, on the host and inside workerd.

A case is a coroutine function named `check_<sentence>`. It uses bare asserts and imports no test framework, so that it
runs in a Worker as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from retain.errors import RetainError

Case = Callable[..., Coroutine[Any, Any, None]]


def cases(suite: ModuleType) -> dict[str, Case]:
    """Return the suite's cases by name, in the order in which they are in the file."""
    return {
        name: case
        for name, case in vars(suite).items()
        if name.startswith("check_") and inspect.iscoroutinefunction(case)
    }


@contextmanager
def raises(kind: type[RetainError], *, code: str | None = None, **details: object) -> Iterator[None]:
    """Require that the block raises this error, with this code when one is given, and with these details."""
    try:
        yield
    except kind as error:
        assert code is None or error.code == code, f"expected code {code!r}, got {error.code!r}"
        assert details.items() <= error.details.items(), f"expected details {details!r}, got {error.details!r}"
    else:
        raise AssertionError(f"expected {kind.__name__}, nothing was raised")
