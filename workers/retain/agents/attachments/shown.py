"""The types of what the routes of attachments answer."""

from __future__ import annotations

from typing_extensions import TypedDict

from retain.attachments.attachment import Attachment


class AttachmentsJson(TypedDict):
    """A page of attachments, the newest first."""

    attachments: list[Attachment]
    cursor: str | None
