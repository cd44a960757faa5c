"""Forgetting what an instance holds: everything, or what names a term. No run is under way meanwhile."""

from __future__ import annotations

from retain.agents.calls.answers import Erased
from retain.agents.duties.owed_deliveries import OwedDeliveries
from retain.agents.runs.journal import Journal
from retain.agents.tools.kept_lists import KeptLists
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Unavailable
from retain.lifecycle.terms import Term
from retain.memory.working import WorkingMemory
from retain.outbox import Outbox
from retain.ports import ObjectSql


class Forgetting:
    """Erases what one instance holds in its object and in KV."""

    def __init__(
        self,
        local: ObjectSql,
        outbox: Outbox,
        working: WorkingMemory,
        journal: Journal,
        deliveries: OwedDeliveries,
        agent: OwnAgent,
    ) -> None:
        self._local = local
        self._outbox = outbox
        self._working = working
        self._journal = journal
        self._deliveries = deliveries
        self._agent = agent

    async def everything(self) -> Erased:
        """Forget everything, also what D1 is owed, and who the object is. Raises: Unavailable; then repeat it."""
        await self._working.clear()
        await self._outbox.discard()
        self._deliveries.clear()
        KeptLists(self._local).forget()
        self._agent.clear()
        self._journal.erase(None)
        self._local.run("DELETE FROM identity")
        return Erased(everything=True)

    async def what_names(self, text: str) -> Erased:
        """Forget what names a term, after D1 has what it is owed, so that nothing that names the term reaches D1 later.

        Raises: Unavailable; then repeat it.
        """
        names = Term.of(text).in_stored
        if not await self._outbox.flush():
            raise Unavailable("the instance has not written everything to D1 yet; try again", code="outbox_waits")
        await self._working.erase(names)
        KeptLists(self._local).forget()
        self._journal.erase(names)
        return Erased(everything=False)
