"""An attachment: a file of a tenant that messages may name, and who may name it."""

from __future__ import annotations

from dataclasses import dataclass

from retain.models.attached import Attached
from retain.ports import Row, SqlValue

MAX_BYTES = 5 * 1_048_576
"""Largest attachment: the largest image that Anthropic's API takes.

Source: https://docs.claude.com/en/docs/build-with-claude/vision#faq
"""
MAX_SENT_BYTES = 6 * 1_048_576
"""Most bytes of attachments in one request to a model. As base64 in JSON they take several times as much memory."""
MAX_ATTACHED = 20
"""Most attachments of one message."""
MAX_UNUSED = 1_000
"""Most files that a user, or nobody, has uploaded and no run has named. They are deleted after a day."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that is stored whole. user_id: whose it is, None for nobody's. sha256: of its content, in hexadecimal."""

    id: str
    name: str
    media_type: str
    bytes: int
    sha256: str
    user_id: str | None
    created_at_ms: int

    def to_json(self) -> dict[str, object]:
        """Return the attachment as HTTP answers have it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def attached(self) -> Attached:
        """What a message keeps of it."""
        return Attached(self.id, self.name, self.media_type, self.bytes)

    @classmethod
    def of_row(cls, row: Row) -> Attachment:
        """Return the attachment in a row."""
        names = ("name", "media_type", "sha256", "user_id")
        kept = {name: row[name] for name in names}
        return cls(row["attachment_id"], bytes=int(row["bytes"]), created_at_ms=int(row["created_at_ms"]), **kept)


@dataclass(frozen=True, slots=True)
class Readers:
    """Who asks. user_id: for whom a run or a token acts, None for nobody in particular. own: only what is that user's.

    The token of a user reaches the user's own attachments alone. A run for a user also reaches those that are nobody's: the
    application uploaded them for everyone. An operator, or a key that reads, reaches all (`EVERYONE`).
    """

    user_id: str | None = None
    own: bool = False
    all: bool = False

    @property
    def condition(self) -> str:
        """The condition on a row, with the user as the parameter ?1."""
        if self.all:
            return "?1 IS NULL"
        return "user_id = ?1" if self.own else "(user_id IS NULL OR user_id = ?1)"

    @property
    def value(self) -> SqlValue:
        """The parameter."""
        return self.user_id


EVERYONE = Readers(all=True)


def object_key(tenant_id: str, attachment_id: str) -> str:
    """Return the key of an attachment's content."""
    return f"{objects_prefix(tenant_id)}{attachment_id}"


def objects_prefix(tenant_id: str) -> str:
    """Return the prefix of all attachments of a tenant."""
    return f"attachments/{tenant_id}/"
