"""Attachments: files that runs bring to their models."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence

import httpx

from retain_client.api import AuthenticatedClient
from retain_client.api.api.attachments import create_attachment, delete_attachment, get_attachment, list_attachments
from retain_client.api.models.attachment import Attachment
from retain_client.api.models.attachments import Attachments as AttachmentsPage
from retain_client.api.types import Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.values import answered, given, or_unset, path_part


class AsyncAttachments:
    """The attachments of a tenant, or of the user whose token the client has."""

    def __init__(self, api: AuthenticatedClient, http: httpx.AsyncClient, tenant: str) -> None:
        self._api = api
        self._http = http
        self._tenant = tenant
        self._path = f"/v1/agents/{path_part(tenant)}/attachments"

    async def upload(
        self, content: bytes, *, name: str | None = None, media_type: str | None = None, user: str | None = None
    ) -> Attachment:
        """Upload a file and return the attachment, that of an earlier upload of the same file if there is one.

        media_type: by default after the name, else recognised by the content. user: only their runs may name it. Raises:
        RetainError.
        """
        known = media_type or mimetypes.guess_type(name or "")[0] or "application/octet-stream"
        response = await self._http.post(
            self._path, content=content, params=given(name=name, user=user), headers={"content-type": known}
        )
        return answered(create_attachment._build_response(client=self._api, response=response), Attachment)

    def list(self, *, user: str | None = None, limit: int | None = None) -> AsyncPages[Attachment]:
        """Return attachments, the newest first. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[Attachment], str | None]:
            response = await list_attachments.asyncio_detailed(
                self._tenant, client=self._api, cursor=cursor, limit=or_unset(limit), user=or_unset(user)
            )
            page = answered(response, AttachmentsPage)
            return page.attachments, page.cursor

        return AsyncPages(read)

    async def get(self, attachment_id: str) -> Attachment:
        """Return what is known of an attachment. Raises: RetainError."""
        response = await get_attachment.asyncio_detailed(self._tenant, attachment_id, client=self._api)
        return answered(response, Attachment)

    async def download(self, attachment_id: str) -> bytes:
        """Return an attachment's content. Raises: RetainError."""
        response = await self._http.get(f"{self._path}/{path_part(attachment_id)}/content")
        return response.content

    async def delete(self, attachment_id: str) -> None:
        """Delete an attachment: no run reads it any more. Raises: RetainError."""
        await delete_attachment.asyncio_detailed(self._tenant, attachment_id, client=self._api)
