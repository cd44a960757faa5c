"""What the suites share: tests that a runner calls as plain functions, or awaits as cases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
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
    finally:
        await suite.close()


def check(holds: object, number: str, message: str) -> None:
    """Require that the invariant with this number holds. Not an `assert`, which Python may leave out.

    Raises: AssertionError.
    """
    if not holds:
        raise AssertionError(f"{number}: {message}")
