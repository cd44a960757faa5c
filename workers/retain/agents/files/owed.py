"""What an instance owes D1 of the attachments of a run: which it names, and that its message brought them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from retain.agents.calls.run_request import RunRequest
from retain.agents.identity import InstanceIdentity
from retain.outbox import OwedStatement


@dataclass(frozen=True, slots=True)
class UseAttachments(OwedStatement):
    """A run names attachments. ids: as JSON. What was deleted or erased meanwhile is not noted."""

    NAME: ClassVar[str] = "use_attachments"
    SQL: ClassVar[str] = """
        INSERT OR IGNORE INTO attachment_uses (run_id, attachment_id, tenant_id, agent_type, instance_id, at_ms)
        SELECT ?1, attachment_id, tenant_id, ?4, ?5, ?6 FROM attachments
        WHERE attachment_id IN (SELECT value FROM json_each(?2)) AND tenant_id = ?3
    """

    run_id: str
    ids: str
    tenant_id: str
    agent_type: str
    instance_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class AttachToMessage(OwedStatement):
    """The files that a message brought. attachments: as JSON."""

    NAME: ClassVar[str] = "attach_to_message"
    SQL: ClassVar[str] = "UPDATE conversation_messages SET attachments = ? WHERE message_id = ?"

    attachments: str
    message_id: str


def uses_of(identity: InstanceIdentity, run_id: str, request: RunRequest, at_ms: int) -> Iterator[UseAttachments]:
    """Yield what D1 is owed when a run is queued or begins, nothing for a run without attachments.

    A delegate reads files of its caller's conversation, which they belong to and are deleted with.
    """
    if request.file_ids and request.parent is None:
        ids = json.dumps(request.file_ids)
        tenant_id = identity.scope.tenant_id
        yield UseAttachments(run_id, ids, tenant_id, identity.agent_type, identity.instance_id, at_ms)


def brought_by(message_id: str, request: RunRequest) -> Iterator[AttachToMessage]:
    """Yield what D1 is owed after the user's message."""
    if request.attachments:
        yield AttachToMessage(json.dumps([file.to_json() for file in request.attachments]), message_id)
