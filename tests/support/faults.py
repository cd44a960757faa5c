"""Faults on demand: any port, wrapped so that its n-th call fails, or so that the object dies at that point."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from retain.errors import Unavailable
from retain.errors.codes import ForeignCode

Port = TypeVar("Port")
Life = tuple[str, int, int]
"""An object's name, and how often everything and it alone had died before."""


class Crash(BaseException):
    """The object died here: nothing after this point happened."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure to come.

    nth: which of the matching points fails, counted from 1 after the fault was planned. point: a point's name,
    or None for every point. owner: the namespace key of the object whose calls count, or None for all. outage: the port
    stays down from then on.
    """

    error: BaseException
    nth: int = 1
    point: str | None = None
    owner: str | None = None
    outage: bool = False


class Faults:
    """Knows every call of every wrapped port, and fails those it was asked to fail.

    A call has the point `port.method` before its effect. One that leaves the object also has `port.method done`, after
    its effect and before the caller knows of it. A `Crash` kills every object, or only the one that met it when `alone`
    is set. What was wrapped for a life that ended raises `Crash` at every call, so the dead do nothing any more.
    """

    def __init__(self, died: Callable[[str | None], None]) -> None:
        """Take what is called at a death with the object's name, or with None when every object died."""
        self._died = died
        self.trace: list[tuple[str, str]] = []
        """Owner and name of every point that was reached."""
        self.down: set[str] = set()
        """Ports that answer `Unavailable` to everything."""
        self.alone = False
        self._planned: list[_Planned] = []
        self._deaths = 0
        self._deaths_of: Counter[str] = Counter()

    def plan(self, fault: Fault) -> None:
        """Plan a fault, counted from now."""
        self._planned.append(_Planned(fault, fault.nth))

    def cancel(self) -> None:
        """Forget what was planned and did not happen."""
        self._planned.clear()

    @property
    def pending(self) -> bool:
        """Whether a planned fault has not happened yet."""
        return bool(self._planned)

    def life(self, owner: str) -> Life:
        """Return the object's life, which ends when it dies."""
        return owner, self._deaths, self._deaths_of[owner]

    def kill(self, owner: str | None = None) -> None:
        """Let the object die between two calls; every object without a name."""
        if owner is None:
            self._deaths += 1
        else:
            self._deaths_of[owner] += 1
        self._died(owner)

    def wrap(self, name: str, port: Port, life: Life, *, before: Callable[[], None] | None = None) -> Port:
        """Return the port with points before and after its coroutines, and before its plain methods.

        before: called first at each call of a coroutine.
        """
        return cast("Port", _Wrapped(self, name, port, life, before))

    def reach(self, life: Life, point: str) -> None:
        """Fail if this is the point for it."""
        owner, (port, _, rest) = life[0], point.partition(".")
        if life != self.life(owner):
            raise Crash(point)
        self.trace.append((owner, point))
        for planned in self._planned:
            if planned.comes_at(owner, point):
                self._planned.remove(planned)
                if planned.fault.outage:
                    self.down.add(port)
                if isinstance(planned.fault.error, Crash):
                    self.kill(owner if self.alone else None)
                raise planned.fault.error
        if port in self.down and not rest.endswith(" done"):
            raise Unavailable(f"{port} is down", code=ForeignCode(f"{port}_unavailable"))


@dataclass
class _Planned:
    fault: Fault
    left: int

    def comes_at(self, owner: str, point: str) -> bool:
        if self.fault.point not in (None, point) or self.fault.owner not in (None, owner):
            return False
        self.left -= 1
        return self.left == 0


class _Wrapped:
    def __init__(self, faults: Faults, name: str, port: object, life: Life, before: Callable[[], None] | None) -> None:
        self._faults = faults
        self._name = name
        self._port = port
        self._life = life
        self._before = before

    def __getattr__(self, attribute: str) -> Any:
        method = getattr(self._port, attribute)
        if not callable(method):
            return method
        point = f"{self._name}.{attribute}"
        faults, life, before = self._faults, self._life, self._before

        async def awaited(*arguments: Any, **named: Any) -> Any:
            if before is not None and life == faults.life(life[0]):
                before()
            faults.reach(life, point)
            result = await method(*arguments, **named)
            faults.reach(life, f"{point} done")
            return result

        def called(*arguments: Any, **named: Any) -> Any:
            faults.reach(life, point)
            return method(*arguments, **named)

        return awaited if inspect.iscoroutinefunction(method) else called
