"""Group commit: the stores of a tenant that arrive while others are being committed are committed together, in order.

A call that meets nobody is stored at once. While it is, others wait; then all that wait become one group, which is
embedded, decided and committed as one call would be. So the calls of one process never contend for the tenant's history,
and the more there are, the fewer round trips each costs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from retain.errors import RetainError, Unavailable
from retain.memory.indexer import Indexer
from retain.memory.writing.calls import StoreCall, StoreResult
from retain.memory.writing.storing import Storing
from retain.ports import Clock, Sql
from retain.tenants.attribution import acting

MAX_GROUP_CONTENTS = 64
"""The most contents of a group of several calls …"""
MAX_GROUP_CHARACTERS = 256 * 1024
"""… and the most characters of them. They bound the transaction, and how long the next group waits."""


class GroupWriter:
    """`Writer` that groups the calls of one process. Share one to group the calls of several memories."""

    def __init__(self, sql: Sql, clock: Clock, indexer: Indexer) -> None:
        self._sql = sql
        self._clock = clock
        self._indexer = indexer
        self._queues: dict[str, deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def store(self, call: StoreCall) -> list[StoreResult]:
        """Store the contents, as `Writer.store`. A caller that is cancelled does not stop the others of its group."""
        tenant_id = call.scope.tenant_id
        waiting = _Waiting(call, asyncio.get_running_loop().create_future())
        queue = self._queues.get(tenant_id)
        if queue is not None:
            queue.append(waiting)
        else:
            queue = self._queues[tenant_id] = deque([waiting])
            task = asyncio.ensure_future(self._serve(tenant_id, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await waiting.answer

    async def _serve(self, tenant_id: str, queue: deque[_Waiting]) -> None:
        """Store what waits, group after group, until nothing does."""
        group: Sequence[_Waiting] = ()
        try:
            while queue:
                group = _next_group(queue)
                try:
                    with acting(None):  # a group is nobody's: each call has its own name
                        outcomes = await self._outcomes(tenant_id, [one.call for one in group])
                except Exception as error:  # noqa: BLE001 -- each caller raises it
                    outcomes = [error for _ in group]
                for one, outcome in zip(group, outcomes, strict=True):
                    one.settle(outcome)
        except BaseException as error:
            for one in [*group, *queue]:
                one.settle(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            del self._queues[tenant_id]

    async def _outcomes(self, tenant_id: str, calls: Sequence[StoreCall]) -> Sequence[list[StoreResult] | Exception]:
        """Return each call's outcome. Calls of which one fails in the same way each time are stored one by one."""
        try:
            return await Storing(tenant_id, self._sql, self._clock, self._indexer, calls).run()
        except Unavailable:
            raise
        except RetainError as error:
            if len(calls) == 1:
                return [error]
        return [await self._alone(tenant_id, call) for call in calls]

    async def _alone(self, tenant_id: str, call: StoreCall) -> list[StoreResult] | Exception:
        try:
            [outcome] = await Storing(tenant_id, self._sql, self._clock, self._indexer, [call]).run()
        except RetainError as error:
            return error
        return outcome


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A call, and where its caller waits for the outcome."""

    call: StoreCall
    answer: asyncio.Future[list[StoreResult]]

    def settle(self, outcome: list[StoreResult] | BaseException) -> None:
        """Give the caller the outcome, if it still waits."""
        if self.answer.done():
            return
        if isinstance(outcome, asyncio.CancelledError):
            self.answer.cancel()
        elif isinstance(outcome, BaseException):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


def _next_group(queue: deque[_Waiting]) -> list[_Waiting]:
    """Remove the next group from the queue: at least one call, and as many more as the bounds allow, in order."""
    group: list[_Waiting] = []
    contents = characters = 0
    while queue:
        news = queue[0].call.news
        contents, characters = contents + len(news), characters + sum(len(new.content) for new in news)
        if group and (contents > MAX_GROUP_CONTENTS or characters > MAX_GROUP_CHARACTERS):
            break
        group.append(queue.popleft())
    return group
