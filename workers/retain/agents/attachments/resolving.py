"""The files of a request, before its run begins: found or stored, and refused where the agent takes none."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

from retain.agents.calls.asked import AskedRun
from retain.agents.calls.asked_files import MAX_INLINE_BYTES, AskedFile, InlineFile, NamedFile
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.run_request import PriorMessage, RunRequest
from retain.agents.context import AgentsContext
from retain.agents.definitions import AgentDefinition
from retain.agents.identity import instance_of
from retain.agents.versions.tenant_agents import FRESH_MS
from retain.attachments.attachment import MAX_SENT_BYTES, Readers
from retain.attachments.media_types import check_name, media_type_of, recognised
from retain.attachments.store import Attachments, NewAttachment, check_count, check_size, no_such_attachment
from retain.errors import InvalidInput, LimitExceeded, NotFound
from retain.http import Request
from retain.models.attached import Attached
from retain.shards.place import in_tenant


async def with_files(
    context: AgentsContext, http: Request, place: tuple[str, str, str], request: RunRequest, asked: AskedRun
) -> RunRequest:
    """Return the request with its files: those that it names, and those that it brings, which are stored.

    The token of a user reaches its own user's files alone. Of the files of earlier messages, those that the run will read
    again are found or stored; the others are named. A repeated request for a run that has begun names its files as it did
    then, though one may be deleted by now, or no longer be taken. place: the tenant, the agent and the instance.
    Raises: NotFound (code `no_such_attachment`); InvalidInput (code `attachments_not_accepted`, `invalid_attachment`, and as
        `Attachments.store`); LimitExceeded (code `too_many_attachments`, `attachment_too_large`); Unavailable.
    """
    if not asked.files and not any(asked.prior_files):
        return request
    tenant_id, agent_type, _ = place
    definition = await context.agents.definition(tenant_id, agent_type, fresh_ms=FRESH_MS)
    files = _Files(context.attachments, tenant_id, definition, Readers(request.user_id, own=http.bound is not None))
    brought = [file for file in (*asked.files, *_all(asked.prior_files)) if isinstance(file, InlineFile)]
    if sum(len(file.content) for file in brought) > MAX_INLINE_BYTES:
        raise _too_large("the files in the request are too large together: upload them first", MAX_INLINE_BYTES)
    try:
        with in_tenant(tenant_id):
            prior = await files.of_earlier(request.prior, asked.prior_files)
            return replace(request, attachments=await files.of_input(asked.files), prior=prior)
    except (NotFound, InvalidInput):
        repeated = await _repeated(InstanceClient(context.instances, instance_of(*place)), request, asked)
        if repeated is None:
            raise
        return repeated


async def _repeated(instance: InstanceClient, request: RunRequest, asked: AskedRun) -> RunRequest | None:
    """Return a repeated request whose run has begun, None for any other.

    It has no more of its files than their ids, by which requests are compared. Raises: Conflict (code
        `idempotency_key_reused`); Unavailable.
    """
    ids = [file.id for file in asked.files if isinstance(file, NamedFile)]
    if request.idempotency_key is None or len(ids) < len(asked.files) or any(asked.prior_files):
        return None
    named = replace(request, attachments=tuple(Attached(one, "", "", 0) for one in dict.fromkeys(ids)))
    try:
        await instance.repeated(named)
    except NotFound:
        return None
    return named


@dataclass(frozen=True, slots=True)
class _Files:
    """What finds and stores the files of one request."""

    attachments: Attachments
    tenant_id: str
    definition: AgentDefinition
    readers: Readers

    async def of_input(self, files: Sequence[AskedFile]) -> tuple[Attached, ...]:
        """Return the files of the input, all of which the agent has to take."""
        check_count(len(files))
        described = [_described(file) if isinstance(file, InlineFile) else file for file in files]
        for file in described:
            if isinstance(file, InlineFile):
                check_size(len(file.content))
                self._check_accepted(_attached(file))
        named = await self._named([file.id for file in described if isinstance(file, NamedFile)])
        for one in named.values():
            self._check_accepted(one)
        sizes = [named[file.id].bytes if isinstance(file, NamedFile) else len(file.content) for file in described]
        if sum(sizes) > MAX_SENT_BYTES:
            raise _too_large("the attachments are too large together", MAX_SENT_BYTES)
        found = [named[file.id] if isinstance(file, NamedFile) else await self._stored(file) for file in described]
        return tuple({one.id: one for one in found}.values())

    async def of_earlier(
        self, messages: Sequence[PriorMessage], files: Sequence[Sequence[AskedFile]]
    ) -> tuple[PriorMessage, ...]:
        """Return earlier messages with their files, the newest of which are stored, as many as the run may read again."""
        left = self.definition.memory_config.conversation.attachments
        found: list[PriorMessage] = []
        for message, brought in zip(reversed(messages), reversed(files), strict=True):
            theirs: list[Attached] = []
            for file in reversed(brought):
                read = left > 0
                one = await self._earlier(file, read=read)
                left -= read and bool(one.id)
                theirs.append(one)
            found.append(replace(message, files=tuple(theirs[::-1])) if theirs else message)
        return tuple(found[::-1])

    async def _earlier(self, file: AskedFile, *, read: bool) -> Attached:
        """Return a file of an earlier message, without an id if the run does not read it."""
        if isinstance(file, NamedFile):
            one = (await self._named([file.id]))[file.id]
            return one if read and one.kind in self.definition.model.accepts else replace(one, id="")
        described = _described(file)
        check_size(len(described.content))
        one = _attached(described)
        return await self._stored(described) if read and one.kind in self.definition.model.accepts else one

    async def _named(self, ids: Sequence[str]) -> dict[str, Attached]:
        if not ids:
            return {}
        found = {one.id: one.attached for one in await self.attachments.named(self.tenant_id, ids, self.readers)}
        missing = next((one for one in ids if one not in found), None)
        if missing is not None:
            raise no_such_attachment(missing)
        return found

    def _check_accepted(self, file: Attached) -> None:
        accepts = self.definition.model.accepts
        if file.kind not in accepts:
            taken = f"takes {', '.join(accepts)}" if accepts else "takes no attachments"
            raise InvalidInput(
                f"the agent {self.definition.type} {taken}",
                code="attachments_not_accepted",
                media_type=file.media_type,
                accepts=list(accepts),
            )

    async def _stored(self, file: InlineFile) -> Attached:
        """Return the attachment with a file's content, the one that there is if the same file was brought before."""
        digest, user_id = hashlib.sha256(file.content).hexdigest(), self.readers.user_id
        name = file.name or ""
        known = await self.attachments.equal(self.tenant_id, user_id, digest, name, file.media_type)
        if known is None:
            new = NewAttachment(name, file.media_type, len(file.content), user_id)
            known, _ = await self.attachments.store(self.tenant_id, new, _one_piece(file.content))
        return known.attached


def _all(files: Sequence[Sequence[AskedFile]]) -> Iterator[AskedFile]:
    return (file for message in files for file in message)


def _described(file: InlineFile) -> InlineFile:
    """Return the file with its media type and its name."""
    media_type = media_type_of(file.media_type) or recognised(file.content)
    return InlineFile(check_name(file.name, media_type), media_type, file.content)


def _attached(file: InlineFile) -> Attached:
    return Attached("", file.name or "", file.media_type, len(file.content))


async def _one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _too_large(message: str, limit_bytes: int) -> LimitExceeded:
    return LimitExceeded(message, code="attachment_too_large", limit_bytes=limit_bytes)
