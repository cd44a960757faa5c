"""What the suites share: tests that a runner calls as plain functions, or awaits as cases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, cast

Case = Callable[[], Awaitable[None]]
"""One test of a suite, to be awaited once."""
Self = TypeVar("Self", bound="Suite")

_COROUTINE = "__invariant__"


def invariant(test: Callable[[Self], Awaitable[None]]) -> Callable[[Self], None]:
    """Return a coroutine method as a test that runs in its own event loop; `Suite.cases` still finds the coroutine."""

    @wraps(test)
    def run(suite: Self) -> None:
        asyncio.run(_opened_and_closed(suite, test))

    setattr(run, _COROUTINE, test)
    return run


class Suite:
    """A contract's tests. Each uses unique names, so the tests may share one store and may be repeated."""

    async def close(self) -> None:
        """Release what the test opened. Called after each test, whether it passed or not."""

    def cases(self) -> dict[str, Case]:
        """Return every test by name, in the order of the suite."""
        return {name: self._case(name) for name in self.names()}

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the tests, in the order of the suite."""
        classes = [one for one in reversed(cls.__mro__) if issubclass(one, Suite)]
        return list(
            dict.fromkeys(name for one in classes for name, test in vars(one).items() if hasattr(test, _COROUTINE))
        )

    def _case(self, name: str) -> Case:
        test = cast("Callable[[Any], Awaitable[None]]", getattr(getattr(type(self), name), _COROUTINE))
        return lambda: _opened_and_closed(self, test)


async def _opened_and_closed(suite: Self, test: Callable[[Self], Awaitable[None]]) -> None:
    try:
        await test(suite)
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{test.__name__}: it raised {type(error).__name__}: {error}") from error
    finally:
        await suite.close()


def check(holds: object, number: str, message: str) -> None:
    """Require that the invariant with this number holds. Not an `assert`, which Python may leave out.

    Raises: AssertionError.
    """
    if not holds:
        raise AssertionError(f"{number}: {message}")


async def raises(work: Awaitable[object]) -> bool:
    """Return whether the work raises an error. Which one is the backend's choice."""
    try:
        await work
    except Exception:  # noqa: BLE001 -- the backend chooses the error
        return True
    return False


async def cancelled(work: Coroutine[object, object, object], turns: int) -> bool:
    """Start the work and cancel it after this many turns of the event loop; return False if it had finished by then."""
    running = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    unfinished = running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return unfinished


def exact(value: object) -> object:
    """Return the value with the types of all its parts: Python calls 1, 1.0 and True equal, JSON does not."""
    if is_dataclass(value):
        return (type(value).__name__, *(exact(getattr(value, field.name)) for field in fields(value)))
    if isinstance(value, Mapping):
        return ("mapping", {name: exact(each) for name, each in value.items()})
    if isinstance(value, list | tuple):
        return (type(value).__name__, [exact(each) for each in value])
    return (type(value).__name__, value)


def short(value: object) -> str:
    """Return how the value is shown in a failure."""
    text = repr(value)
    return text if len(text) < 400 else f"{text[:400]}…"
