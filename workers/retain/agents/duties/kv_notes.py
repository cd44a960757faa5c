"""Notes of what an instance changes in KV: whose the changes are, and the ledger's rows that D1 is owed."""

from __future__ import annotations

from collections.abc import Callable

from retain.agents.identity import InstanceIdentity
from retain.agents.ledgers.statements import NoteKvChange
from retain.agents.runs.journal import Journal
from retain.ledgers.kv_audit import KvChange, KvOwner
from retain.outbox import Outbox


class KvNotes:
    """Notes the changes of one instance."""

    def __init__(
        self, identity: InstanceIdentity, journal: Journal, outbox: Outbox, erasing: Callable[[], bool]
    ) -> None:
        """erasing: returns whether everything that the instance has is being removed."""
        self._identity = identity
        self._journal = journal
        self._outbox = outbox
        self._erasing = erasing

    def owner(self) -> KvOwner:
        """Return whose the changes are."""
        identity = self._identity
        return KvOwner(identity.scope.tenant_id, identity.agent_type, identity.instance_id, self._journal.served_user())

    def note(self, change: KvChange) -> None:
        """Owe D1 the note of a change. What an erasure removes is counted on its receipt, and noted nowhere else."""
        if not self._erasing():
            self._outbox.add(change.tenant_id, NoteKvChange(change))
