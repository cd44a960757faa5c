"""Files as requests name or bring them."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import Field, model_validator

from retain.attachments.store import check_count
from retain.errors import InvalidInput
from retain.identifiers import check_id
from retain.routing.bodies import BodyModel

MAX_INLINE_BYTES = 2_621_440
"""Most bytes of all files that one request brings in its body: larger ones are uploaded first."""
MAX_BODY_BYTES = 4 * 1_048_576
"""Largest body of a request that may bring files: they are a third larger as base64."""
MAX_NAME = 400
"""Longest name in a body, in characters: what is longer is refused before it is read."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """An attachment that was uploaded before."""

    id: str


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file in the request's body. name: None for one after its media type. media_type: "" where nobody says."""

    name: str | None
    media_type: str
    content: bytes


AskedFile: TypeAlias = NamedFile | InlineFile


class FileBody(BodyModel):
    """A file of a message: the id of an attachment, or a small file itself, as base64 in `data`."""

    id: str | None = None
    data: str | None = Field(default=None, description="the content, as base64")
    media_type: str | None = Field(default=None, max_length=200, description="of `data`")
    name: str | None = Field(default=None, max_length=MAX_NAME, description="of `data`")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> FileBody:
        if (self.id is None) is (self.data is None):
            raise ValueError("an attachment has either an id, or data")
        if self.id is not None and (self.media_type is not None or self.name is not None):
            raise ValueError("name and media_type are those of data")
        return self

    def asked(self) -> AskedFile:
        """Return the file. Raises: InvalidInput (code `invalid_id`, `invalid_attachment`)."""
        if self.id is not None:
            return NamedFile(check_id(self.id))
        return InlineFile(self.name, self.media_type or "", decoded(self.data or ""))


def asked_files(bodies: list[FileBody]) -> list[AskedFile]:
    """Return the files of a body. Raises: LimitExceeded (code `too_many_attachments`); as `FileBody.asked`."""
    check_count(len(bodies))
    return [body.asked() for body in bodies]


def decoded(data: str) -> bytes:
    """Return what base64 says. Raises: InvalidInput (code `invalid_attachment`)."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("the content of an attachment is not base64", code="invalid_attachment") from error


def of_data_url(url: str, name: str | None = None) -> InlineFile:
    """Return the file that a data URL holds. Raises: InvalidInput (code `invalid_attachment`).

    Source: https://www.rfc-editor.org/rfc/rfc2397
    """
    head, _, data = url.partition(",")
    media_type, *parameters = head[5:].split(";")
    if "base64" not in [parameter.strip().lower() for parameter in parameters]:
        raise InvalidInput("a data URL has its content as base64", code="invalid_attachment")
    return InlineFile(name, media_type, decoded(data))
