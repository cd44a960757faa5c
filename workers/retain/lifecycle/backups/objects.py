"""The objects of a backup: its pages, and a manifest that is written last. Without it, a backup does not exist."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from retain.errors import InvalidInput, NotFound, UpstreamFailed
from retain.identifiers import ULID, check_id, time_of
from retain.json_text import read_own_json
from retain.ports import Objects

FORMAT = 1
LISTED = 40
"""Most manifests that are read at a time: each is a call."""
_LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A complete backup. began_at_ms, completed_at_ms: every page was read between them. bytes: of all pages."""

    format: int
    backup_id: str
    tenant_id: str
    began_at_ms: int
    completed_at_ms: int
    pages: int
    lines: int
    bytes: int

    def to_json(self) -> dict[str, object]:
        """Return the manifest as HTTP answers have it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """Manifests of a listing, oldest first, and the cursor of the next page, None at the end."""

    manifests: list[Manifest]
    cursor: str | None


def backups_prefix(tenant_id: str) -> str:
    """Return the prefix of all objects of a tenant's backups."""
    return f"backups/{tenant_id}/"


def pages_prefix(tenant_id: str, backup_id: str = "") -> str:
    """Return the prefix of the pages of a backup, or of all backups of a tenant."""
    return f"{backups_prefix(tenant_id)}pages/{backup_id + '/' if backup_id else ''}"


class BackupObjects:
    """The objects of one tenant's backups."""

    def __init__(self, objects: Objects, tenant_id: str) -> None:
        self._objects = objects
        self._tenant_id = tenant_id

    async def listed(self, *, after: str | None = None, limit: int = LISTED) -> ManifestPage:
        """Return a page of the complete backups, oldest first. after: the cursor that a page had, which is a backup's id.

        Raises: InvalidInput (code `invalid_cursor`).
        """
        if after is not None and ULID.fullmatch(after) is None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        later = [one for one in await self._ids() if one > (after or "")]
        chosen = later[: min(limit, LISTED)]
        keys = [self._manifest_key(one) for one in chosen]
        found = [_manifest(content) for key in keys if (content := await self._objects.get(key)) is not None]
        return ManifestPage(found, chosen[-1] if len(chosen) < len(later) else None)

    async def _ids(self) -> list[str]:
        """Return the ids of all complete backups in their order, which is that of time."""
        prefix = f"{backups_prefix(self._tenant_id)}manifests/"
        page = await self._objects.list(prefix)
        keys = page.keys
        while page.cursor is not None:
            page = await self._objects.list(prefix, cursor=page.cursor)
            keys += page.keys
        return sorted(key.removeprefix(prefix).removesuffix(".json") for key in keys)

    async def all(self) -> list[Manifest]:
        """Return every complete backup, oldest first."""
        page = await self.listed()
        found = page.manifests
        while page.cursor is not None:
            page = await self.listed(after=page.cursor)
            found += page.manifests
        return found

    async def made_before(self, at_ms: int) -> list[str]:
        """Return the ids of the complete backups that began before a time, oldest first."""
        return [one for one in await self._ids() if ULID.fullmatch(one) and time_of(one) < at_ms]

    async def get(self, backup_id: str) -> Manifest:
        """Return a complete backup. Raises: InvalidInput; NotFound (code `no_such_backup`)."""
        content = await self._objects.get(self._manifest_key(check_id(backup_id)))
        if content is None:
            raise NotFound("there is no such backup", code="no_such_backup")
        return _manifest(content)

    async def complete(self, manifest: Manifest) -> None:
        """Write the manifest, which makes the backup exist."""
        content = json.dumps(manifest.to_json()).encode()
        await self._objects.put(self._manifest_key(manifest.backup_id), content, content_type="application/json")

    async def put_page(self, backup_id: str, number: int, text: str) -> None:
        """Write a page. Idempotent."""
        await self._objects.put(self._page_key(backup_id, number), text.encode(), content_type=_LINES)

    async def page(self, backup_id: str, number: int) -> str:
        """Return a page. Raises: UpstreamFailed (code `backup_incomplete`)."""
        content = await self._objects.get(self._page_key(backup_id, number))
        if content is None:
            raise UpstreamFailed("a page of the backup is missing", code="backup_incomplete", page=number)
        return content.decode()

    async def remove_page(self, backup_id: str, number: int) -> None:
        """Remove a page."""
        await self._objects.delete(self._page_key(backup_id, number))

    async def remove(self, backup_id: str, *, limit: int) -> bool:
        """Remove a backup, its manifest first; return whether nothing is left. limit: most pages that one call removes."""
        await self.withdraw(backup_id)
        page = await self._objects.list(pages_prefix(self._tenant_id, backup_id), limit=limit)
        for key in page.keys:
            await self._objects.delete(key)
        return page.cursor is None

    async def withdraw(self, backup_id: str) -> None:
        """Remove the manifest: the backup is not complete."""
        await self._objects.delete(self._manifest_key(check_id(backup_id)))

    async def wear_away(self, backup_id: str, *, limit: int) -> None:
        """Remove up to `limit` pages of a backup, and its manifest with the last of them, so that the next call finds it."""
        page = await self._objects.list(pages_prefix(self._tenant_id, backup_id), limit=limit)
        for key in page.keys:
            await self._objects.delete(key)
        if page.cursor is None:
            await self._objects.delete(self._manifest_key(backup_id))

    def _manifest_key(self, backup_id: str) -> str:
        return f"{backups_prefix(self._tenant_id)}manifests/{backup_id}.json"

    def _page_key(self, backup_id: str, number: int) -> str:
        return f"{pages_prefix(self._tenant_id, backup_id)}{number:06d}.jsonl"


def _manifest(content: bytes) -> Manifest:
    return Manifest(**read_own_json(content))
