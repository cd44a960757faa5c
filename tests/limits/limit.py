"""A limit as data: the constant that states it, how it is reached, and what exceeding it answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from retain.errors import RetainError
from tests.attack.evidence import Rows, rows_of
from tests.shell.worker import Worker, serving
from tests.support.instances import staged_agents

TENANT = "acme"


class Refused(RetainError):
    """An answer that is a problem."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.refusal = code


class Bench:
    """A Worker with one tenant, where limits are tried."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.before: Rows = {}

    def begin(self) -> None:
        """Remember what there is before a request that is refused."""
        self.before = self.rows()

    async def ask(self, method: str, path: str, content: object = None, **sent: Any) -> Any:
        """Return the content of an answer, its text if it is not JSON. Raises: Refused."""
        if content is not None:
            sent["body"] = json.dumps(content, ensure_ascii=False).encode()
        answer = await self.worker.request(method, path.replace("{tenant}", TENANT), **sent)
        assert answer.status < 500 or answer.status == 507, answer.body[:500]
        if answer.status >= 300:
            raise Refused(answer.status, answer.content["code"])
        return answer.content if answer.headers.get("content-type") == "application/json" else answer.body.decode()

    def rows(self) -> Rows:
        """Return every row of every store."""
        worker = self.worker
        found = dict(rows_of("d1", worker.db.store._connection))
        found |= rows_of("kv", worker.kv.store._connection)
        found |= rows_of("r2", worker.cold.store._connection)
        found |= rows_of("vectors", worker.vectors.store._connection)
        for name, storage in worker.agents.storages.items():
            found |= rows_of(f"do:{name}", storage.connection)
        return found


Attempt = Callable[[Bench, int], Awaitable[object]]


async def nothing(_: Bench) -> None:
    """Prepare nothing."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A limit, and what lies on both sides of it.

    constant: its dotted name, or None for one that is written in a pattern; then `at` is its value. code: what a size
    beyond it answers, None where nothing is refused. what: which of several cases of the limit. least: whether it bounds
    from below.
    """

    constant: str | None
    code: str | None
    what: str = ""
    at: int = 0
    least: bool = False

    @property
    def value(self) -> int:
        """The limit."""
        return self.at if self.constant is None else value_of(self.constant)

    @property
    def accepted(self) -> tuple[int, int]:
        """The last two sizes that are accepted."""
        return (self.value, self.value + 1) if self.least else (self.value - 1, self.value)

    @property
    def beyond(self) -> int:
        """The first size that is not."""
        return self.value - 1 if self.least else self.value + 1

    @property
    def name(self) -> str:
        """What a test report calls it."""
        return " ".join(filter(None, [self.constant and self.constant.removeprefix("retain."), self.what]))


@dataclass(frozen=True, kw_only=True)
class Limit(Bound):
    """A limit that a caller of the code meets.

    attempt: tries a size, and checks that what was accepted is there whole. Raises: ValueError when a text was cut or a
    list divided.
    """

    attempt: Callable[[int], Awaitable[object] | object]


@dataclass(frozen=True, kw_only=True)
class ServedLimit(Bound):
    """A limit that a request meets.

    attempt: also gets the bench. prepare: what has to be there before. writes: whether a request writes all the same what
    is not beyond the limit. agent: one that is served besides the shipped ones.
    """

    attempt: Attempt
    prepare: Callable[[Bench], Awaitable[object]] = nothing
    writes: bool = False
    agent: Mapping[str, Any] | None = None
    variables: Mapping[str, str] | None = None

    def serving(self) -> AbstractAsyncContextManager[Worker]:
        """Serve a Worker in which to try it."""
        return serving(agents=None if self.agent is None else staged_agents(self.agent), **(self.variables or {}))


def value_of(constant: str) -> int:
    """Return the value of a constant by its dotted name."""
    module, _, name = constant.rpartition(".")
    value: int = getattr(import_module(module), name)
    return value


def text_of(size: int, letter: str = "語") -> str:
    """Return a text of so many bytes, made of a letter that has several."""
    width = len(letter.encode())
    return letter * (size // width) + "x" * (size % width)


def refusal_of(error: RetainError) -> str:
    """Return the code of a refusal."""
    return error.refusal if isinstance(error, Refused) else str(error.code)


@contextmanager
def refused(code: str | None) -> Iterator[None]:
    """Check that the block is refused with the code, as something for the caller to change."""
    try:
        yield
    except RetainError as error:
        assert refusal_of(error) == code
    except ValueError:
        assert code is None
    else:
        raise AssertionError("accepted beyond its limit")
