"""Forgetting what an instance holds: everything, or what names a term. No run is under way meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from retain.agents.calls.answers import Erased
from retain.agents.duties.owed_deliveries import OwedDeliveries
from retain.agents.duties.own_sql import OwnSql
from retain.agents.runs.events import RunSuspended, name_of
from retain.agents.runs.journal import Journal
from retain.agents.tools.delegation import ERASURE, Delegation
from retain.agents.tools.kept_lists import KeptLists
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Conflict, Unavailable
from retain.lifecycle.terms import Term
from retain.memory.working import WorkingMemory
from retain.outbox import Outbox


class Forgetting:
    """Erases what one instance holds in its object and in KV."""

    def __init__(
        self,
        local: OwnSql,
        outbox: Outbox,
        working: WorkingMemory,
        journal: Journal,
        deliveries: OwedDeliveries,
        agent: OwnAgent,
        delegation: Delegation,
    ) -> None:
        self._local = local
        self._outbox = outbox
        self._working = working
        self._journal = journal
        self._deliveries = deliveries
        self._agent = agent
        self._delegation = delegation

    async def of(self, text: str | None) -> Erased:
        """Forget what names a term, or everything without one. Raises: Unavailable; Conflict, as `what_names`."""
        return await (self.everything() if text is None else self.what_names(text))

    async def everything(self) -> Erased:
        """Forget everything, also what D1 is owed, and who the object is; delegates for which a run waits are cancelled.

        Nothing that this `Instance` still does writes anything afterwards. Raises: Unavailable; then repeat it.
        """
        await self._abandon(self._suspended())
        await self._working.clear()
        await self._outbox.discard()
        self._deliveries.clear()
        KeptLists(self._local).forget()
        self._agent.clear()
        self._journal.erase(None)
        self._local.run("DELETE FROM identity")
        self._local.close()
        return Erased(everything=True)

    async def what_names(self, text: str) -> Erased:
        """Forget what names a term, after D1 has what it is owed, so that nothing that names the term reaches D1 later.

        Delegates for which a run waits that names it are cancelled; they wake the run, which is erased all the same.
        Raises: Unavailable, and Conflict (code `instance_busy`) when a waiting run was answered meanwhile; then repeat it.
        """
        names = Term.of(text).in_stored
        if not await self._outbox.flush():
            raise Unavailable("the instance has not written everything to D1 yet; try again", code="outbox_waits")
        await self._working.erase(names)
        waiting = self._suspended()
        naming = {run.run_id for run in self._journal.runs.naming(names, self._journal.log.texts)} if waiting else set()
        abandoned = naming.intersection(waiting)
        await self._abandon(abandoned)
        # Another run's texts are those of a run under way, and D1 will be owed more of them.
        if not abandoned.issuperset(self._journal.runs.running()):
            raise Conflict("a run was answered meanwhile; try again", code="instance_busy")
        KeptLists(self._local).forget()
        self._journal.erase(names)
        return Erased(everything=False)

    def _suspended(self) -> list[str]:
        return self._journal.runs.suspended(name_of(RunSuspended))

    async def _abandon(self, run_ids: Iterable[str]) -> None:
        """Cancel the delegates for which runs wait that are about to be erased. Raises: Unavailable."""
        for run_id in run_ids:
            await self._delegation.abandon(self._journal.load(run_id), ERASURE)
