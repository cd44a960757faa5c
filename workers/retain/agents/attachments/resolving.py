"""The files of a request, before its run begins: found or stored, and refused where the agent takes none."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from retain.agents.calls.asked_files import MAX_INLINE_BYTES, AskedFile, InlineFile, NamedFile
from retain.agents.calls.run_request import RunRequest
from retain.agents.definitions import AgentDefinition
from retain.attachments.attachment import MAX_SENT_BYTES, Attachment, Readers
from retain.attachments.media_types import check_name, media_type_of, recognised
from retain.attachments.store import Attachments, NewAttachment, check_count, check_size
from retain.errors import InvalidInput, LimitExceeded
from retain.models.attached import Attached, FileKind


async def with_attachments(
    attachments: Attachments,
    tenant_id: str,
    definition: AgentDefinition,
    request: RunRequest,
    files: Sequence[AskedFile],
    *,
    own: bool,
) -> RunRequest:
    """Return the request with its files: those that it names, and those that it brings, which are stored.

    own: whether the caller reaches its own user's files alone. Raises: NotFound (code `no_such_attachment`); InvalidInput
        (code `attachments_not_accepted`, and as `Attachments.store`); LimitExceeded (code `too_many_attachments`,
        `attachment_too_large`); QuotaExceeded; Unavailable.
    """
    if not files:
        return request
    check_count(len(files))
    if len({file.id for file in files if isinstance(file, NamedFile)}) < sum(isinstance(f, NamedFile) for f in files):
        raise InvalidInput("an attachment is named twice", code="invalid_attachment")
    brought = [_described(file) for file in files if isinstance(file, InlineFile)]
    if sum(len(file.content) for file in brought) > MAX_INLINE_BYTES:
        raise _too_large("the files in the request are too large together: upload them first", MAX_INLINE_BYTES)
    for file in brought:
        check_size(len(file.content))
        _check_accepted(
            definition, Attached("", file.name or "", file.media_type, len(file.content)).kind, file.media_type
        )
    named = await attachments.named(
        tenant_id, [file.id for file in files if isinstance(file, NamedFile)], Readers(request.user_id, own=own)
    )
    for one in named:
        _check_accepted(definition, one.attached.kind, one.media_type)
    if sum(one.bytes for one in named) + sum(len(file.content) for file in brought) > MAX_SENT_BYTES:
        raise _too_large("the attachments are too large together", MAX_SENT_BYTES)
    stored = iter([await _stored(attachments, tenant_id, request.user_id, file) for file in brought])
    found = {one.id: one for one in named}
    whole = [found[file.id] if isinstance(file, NamedFile) else next(stored) for file in files]
    distinct = {one.id: one.attached for one in whole}
    return replace(request, attachments=tuple(distinct.values()))


def _check_accepted(definition: AgentDefinition, kind: FileKind, media_type: str) -> None:
    accepts = definition.model.accepts
    if kind not in accepts:
        taken = f"takes {', '.join(accepts)}" if accepts else "takes no attachments"
        raise InvalidInput(
            f"the agent {definition.type} {taken}",
            code="attachments_not_accepted",
            media_type=media_type,
            accepts=list(accepts),
        )


def _described(file: InlineFile) -> InlineFile:
    """Return the file with its media type and its name."""
    media_type = media_type_of(file.media_type) or recognised(file.content)
    return InlineFile(check_name(file.name, media_type), media_type, file.content)


async def _stored(attachments: Attachments, tenant_id: str, user_id: str | None, file: InlineFile) -> Attachment:
    """Return the attachment with a file's content, the one that there is if the same file was brought before."""
    digest = hashlib.sha256(file.content).hexdigest()
    known = await attachments.equal(tenant_id, user_id, digest, file.name or "", file.media_type)
    if known is not None:
        return known
    new = NewAttachment(file.name, file.media_type, len(file.content), user_id)
    stored, _ = await attachments.store(tenant_id, new, _one_piece(file.content))
    return stored


async def _one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _too_large(message: str, limit_bytes: int) -> LimitExceeded:
    return LimitExceeded(message, code="attachment_too_large", limit_bytes=limit_bytes)
