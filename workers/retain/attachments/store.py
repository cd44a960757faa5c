"""The attachments of a deployment: their rows in D1, their content in R2.

The row is written before the object, and an object is removed after its row. A row that is deleted, by whatever statement,
leaves a debt (migrations/0052_attachments.sql), so no object is without a row or a debt, whenever a call is interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from retain.attachments.attachment import EVERYONE, MAX_ATTACHED, MAX_BYTES, MAX_UNUSED, Attachment, Readers, object_key
from retain.attachments.media_types import HEAD_BYTES, ContentCheck, check_name, checked, media_type_of, recognised
from retain.attachments.objects import StreamedObjects
from retain.attachments.removal import remove_owed
from retain.errors import ConstraintViolated, InvalidInput, LimitExceeded, NotFound, QuotaExceeded, Unavailable
from retain.identifiers import new_id
from retain.models.attached import Attached
from retain.ports import Clock, Sql, SqlValue

_OF_ONE = "tenant_id = ?2 AND attachment_id = ?3 AND sha256 IS NOT NULL"
_BEGIN = """
INSERT INTO attachments (attachment_id, tenant_id, user_id, name, media_type, bytes, created_at_ms, used_at_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7 WHERE ?8 > (SELECT COUNT(*) FROM (
  SELECT 1 FROM attachments WHERE tenant_id = ?2 AND COALESCE(user_id, '') = COALESCE(?3, '') AND last_run_id IS NULL
  LIMIT ?8))
RETURNING attachment_id
"""
_COMPLETE = "UPDATE attachments SET sha256 = ? WHERE attachment_id = ? AND sha256 IS NULL RETURNING *"
_EQUAL = """
UPDATE attachments SET used_at_ms = MAX(used_at_ms, ?6) WHERE tenant_id = ?1 AND COALESCE(user_id, '') = COALESCE(?2, '')
  AND sha256 = ?3 AND name = ?4 AND media_type = ?5 RETURNING *
"""
_NAMED = """
UPDATE attachments SET used_at_ms = MAX(used_at_ms, ?4)
WHERE attachment_id IN (SELECT value FROM json_each(?3)) AND tenant_id = ?2 AND sha256 IS NOT NULL AND {who} RETURNING *
"""
_READ = """
SELECT attachment_id FROM attachments
WHERE attachment_id IN (SELECT value FROM json_each(?3)) AND tenant_id = ?2 AND sha256 IS NOT NULL AND {who}
"""


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file to store. media_type: as declared. name: None for one after the media type. size_bytes: as announced."""

    name: str | None
    media_type: str
    size_bytes: int
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class AttachmentPage:
    """Attachments, the newest first, and the cursor of the next page: None on the last."""

    attachments: Sequence[Attachment]
    cursor: str | None


class Attachments:
    """The attachments of all tenants."""

    def __init__(self, sql: Sql, objects: StreamedObjects, clock: Clock) -> None:
        self._sql = sql
        self._objects = objects
        self._clock = clock

    async def store(self, tenant_id: str, new: NewAttachment, pieces: AsyncIterator[bytes]) -> tuple[Attachment, bool]:
        """Store a file as it arrives; return it, and whether it is new.

        An equal content with the same name and media type of the same user is stored once. Durable when it returns.
        Raises: InvalidInput (code `unsupported_media_type`, `media_type_mismatch`, `invalid_attachment_name`,
            `empty_content`, `invalid_content` for another size than was announced); LimitExceeded (code
            `attachment_too_large`); QuotaExceeded (code `too_many_uploads`); what the pieces raise; Unavailable. Then
            nothing is stored.
        """
        media_type = media_type_of(new.media_type)
        check_size(new.size_bytes)
        if not media_type:
            head, pieces = await _beginning(pieces)
            media_type = recognised(head)
        name = check_name(new.name, media_type)
        digest = hashlib.sha256()
        made, now = new_id(), self._clock()
        values = (made, tenant_id, new.user_id, name, media_type, new.size_bytes, now)
        if not (await self._sql.run(_BEGIN, *values, MAX_UNUSED)).rows:
            raise QuotaExceeded(
                f"a user has at most {MAX_UNUSED} files that no run has named: delete some, or wait a day",
                code="too_many_uploads",
                limit=MAX_UNUSED,
            )
        try:
            arriving = _hashed(digest, checked(ContentCheck(media_type), pieces))
            key = object_key(tenant_id, made)
            await self._objects.put_stream(key, arriving, size_bytes=new.size_bytes, content_type=media_type)
            found = await self._complete(tenant_id, made, digest.hexdigest())
        except BaseException:
            with suppress(Unavailable):
                await self._forget(tenant_id, made)
            raise
        if found is not None:
            return found, True
        await self._forget(tenant_id, made)
        equal = await self.equal(tenant_id, new.user_id, digest.hexdigest(), name, media_type)
        if equal is None:
            raise Unavailable("the tenant or its user is being erased", code="contended")
        return equal, False

    async def _complete(self, tenant_id: str, attachment_id: str, sha256: str) -> Attachment | None:
        """Return the attachment, which can be read from now on; None if an equal one exists, or if its row is gone."""
        try:
            rows = (await self._sql.run(_COMPLETE, sha256, attachment_id)).rows
        except ConstraintViolated:
            return None
        if not rows:  # erased meanwhile, and perhaps before the object was written
            await self._objects.delete(object_key(tenant_id, attachment_id))
        return Attachment.of_row(rows[0]) if rows else None

    async def _forget(self, tenant_id: str, attachment_id: str) -> None:
        """Remove what did not become an attachment, its object too as far as it is there already.

        One that did become one stays: then only D1's answer was lost.
        """
        _, whole = await self._sql.batch(
            [
                ("DELETE FROM attachments WHERE attachment_id = ? AND sha256 IS NULL", (attachment_id,)),
                ("SELECT 1 FROM attachments WHERE attachment_id = ?", (attachment_id,)),
            ]
        )
        if not whole.rows:
            await self._objects.delete(object_key(tenant_id, attachment_id))

    async def equal(
        self, tenant_id: str, user_id: str | None, sha256: str, name: str, media_type: str
    ) -> Attachment | None:
        """Return the attachment with this content, name, media type and user, None if there is none."""
        values: tuple[SqlValue, ...] = (tenant_id, user_id, sha256, name, media_type, self._clock())
        rows = (await self._sql.run(_EQUAL, *values)).rows
        return Attachment.of_row(rows[0]) if rows else None

    async def get(self, tenant_id: str, attachment_id: str, readers: Readers = EVERYONE) -> Attachment:
        """Return an attachment. Raises: NotFound (code `no_such_attachment`)."""
        query = f"SELECT * FROM attachments WHERE {_OF_ONE} AND {readers.condition}"  # noqa: S608
        rows = (await self._sql.run(query, readers.value, tenant_id, attachment_id)).rows
        if not rows:
            raise no_such_attachment(attachment_id)
        return Attachment.of_row(rows[0])

    async def page(
        self, tenant_id: str, readers: Readers = EVERYONE, *, before: str | None = None, limit: int
    ) -> AttachmentPage:
        """Return the attachments that are older than the one with the id `before`, the newest first."""
        query = (
            f"SELECT * FROM attachments WHERE tenant_id = ?2 AND attachment_id < ?3 AND {readers.condition}"  # noqa: S608
            " AND sha256 IS NOT NULL ORDER BY attachment_id DESC LIMIT ?4"
        )
        rows = (await self._sql.run(query, readers.value, tenant_id, before or "~", limit + 1)).rows
        found = [Attachment.of_row(row) for row in rows[:limit]]
        return AttachmentPage(found, found[-1].id if len(rows) > limit else None)

    async def open(self, tenant_id: str, attachment_id: str) -> AsyncIterator[bytes]:
        """Return the content of an attachment, piece by piece. Raises: NotFound (code `no_such_attachment`)."""
        content = await self._objects.stream(object_key(tenant_id, attachment_id))
        if content is None:
            raise no_such_attachment(attachment_id)
        return content

    async def delete(self, tenant_id: str, attachment_id: str, readers: Readers = EVERYONE) -> None:
        """Delete an attachment. No run reads it any more; its object is removed now, or within minutes if R2 is away.

        Raises: NotFound (code `no_such_attachment`).
        """
        query = f"DELETE FROM attachments WHERE {_OF_ONE} AND {readers.condition} RETURNING attachment_id"  # noqa: S608
        if not (await self._sql.run(query, readers.value, tenant_id, attachment_id)).rows:
            raise no_such_attachment(attachment_id)
        await self.remove_owed(tenant_id)

    async def remove_owed(self, tenant_id: str) -> None:
        """Remove the tenant's objects that have no row any more, as far as R2 answers."""
        with suppress(Unavailable):
            await remove_owed(self._sql, self._objects, self._clock(), tenant_id=tenant_id)

    async def named(self, tenant_id: str, ids: Sequence[str], readers: Readers) -> list[Attachment]:
        """Return the attachments that a message names, in its order. They are kept for another day at least.

        Raises: NotFound (code `no_such_attachment`) for one that the readers do not reach.
        """
        query = _NAMED.format(who=readers.condition)
        rows = (await self._sql.run(query, readers.value, tenant_id, json.dumps(ids), self._clock())).rows
        found = {row["attachment_id"]: Attachment.of_row(row) for row in rows}
        missing = next((one for one in ids if one not in found), None)
        if missing is not None:
            raise no_such_attachment(missing)
        return [found[one] for one in ids]

    async def contents(self, tenant_id: str, files: Sequence[Attached], readers: Readers) -> Mapping[str, bytes]:
        """Return the contents of files by their ids, without those that were deleted meanwhile. Raises: Unavailable."""
        ids = json.dumps([file.id for file in files])
        rows = (await self._sql.run(_READ.format(who=readers.condition), readers.value, tenant_id, ids)).rows
        found: dict[str, bytes] = {}
        for row in rows:
            content = await self._objects.get(object_key(tenant_id, row["attachment_id"]))
            if content is not None:
                found[row["attachment_id"]] = content
        return found


def check_size(size_bytes: int) -> None:
    """Raises: InvalidInput (code `empty_content`); LimitExceeded (code `attachment_too_large`)."""
    if size_bytes == 0:
        raise InvalidInput("the file is empty", code="empty_content")
    if size_bytes > MAX_BYTES:
        raise LimitExceeded("the file is too large", code="attachment_too_large", limit_bytes=MAX_BYTES)


def check_count(count: int) -> None:
    """Raises: LimitExceeded (code `too_many_attachments`)."""
    if count > MAX_ATTACHED:
        raise LimitExceeded(
            f"a message has at most {MAX_ATTACHED} attachments", code="too_many_attachments", limit=MAX_ATTACHED
        )


def no_such_attachment(attachment_id: str) -> NotFound:
    """Return the error for an attachment that does not exist, or not for who asks."""
    return NotFound("there is no such attachment", code="no_such_attachment", attachment_id=attachment_id)


async def _hashed(digest: hashlib._Hash, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        digest.update(piece)
        yield piece


async def _beginning(pieces: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """Return how a content begins, and the whole content again."""
    head = b""
    async for piece in pieces:
        head += piece
        if len(head) >= HEAD_BYTES:
            break

    async def again() -> AsyncIterator[bytes]:
        yield head
        async for piece in pieces:
            yield piece

    return head, again()
