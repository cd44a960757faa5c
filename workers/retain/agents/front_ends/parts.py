"""The parts of a message, in the forms of OpenAI and AG-UI: text, and files.

Source: https://platform.openai.com/docs/api-reference/chat/create, https://docs.ag-ui.com/spec/1.0/basic/messages
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from retain.agents.calls.asked_files import AskedFile, InlineFile, NamedFile, decoded, of_data_url
from retain.errors import InvalidInput
from retain.identifiers import check_id

FILE_PARTS = frozenset({"image_url", "file", "image", "document", "binary"})
"""The types of parts that are files: the first two are OpenAI's, the others AG-UI's."""


class _OpenPart(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, populate_by_name=True)


class ImageUrl(_OpenPart):
    """The image of a part of OpenAI's, as a data URL. Further members, such as `detail`, are ignored."""

    url: str


class FileOfPart(_OpenPart):
    """The file of a part of OpenAI's. file_id: of an attachment."""

    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class PartSource(_OpenPart):
    """Where the content of a part of AG-UI's is. value: base64, a data URL, or the id of an attachment, by the type."""

    type: Literal["data", "url", "file"]
    value: str
    mime_type: str | None = Field(default=None, alias="mimeType")


class ContentPart(_OpenPart):
    """A part of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None
    file: FileOfPart | None = None
    source: PartSource | None = None
    id: str | None = None
    url: str | None = None
    data: str | None = None
    filename: str | None = None
    mime_type: str | None = Field(default=None, alias="mimeType")


def file_of(part: ContentPart, number: int) -> AskedFile:
    """Return the file that a part is. number: the position of its message.

    Raises: InvalidInput (code `unsupported_content`, `invalid_attachment`, `invalid_id`).
    """
    match part:
        case ContentPart(type="image_url", image_url=ImageUrl(url=url)):
            return _of_url(url, None, number)
        case ContentPart(type="file", file=FileOfPart(file_id=str(file_id))):
            return NamedFile(check_id(file_id))
        case ContentPart(type="file", file=FileOfPart(file_data=str(data), filename=name)):
            return of_data_url(data, name) if data[:5].lower() == "data:" else InlineFile(name, "", decoded(data))
        case ContentPart(type="image" | "document", source=PartSource(type="data", value=value, mime_type=media_type)):
            return InlineFile(None, media_type or "", decoded(value))
        case ContentPart(type="image" | "document", source=PartSource(type="file", value=value)):
            return NamedFile(check_id(value))
        case ContentPart(type="image" | "document", source=PartSource(type="url", value=value)):
            return _of_url(value, None, number)
        case ContentPart(type="binary", data=str(data), filename=name, mime_type=media_type):
            return InlineFile(name, media_type or "", decoded(data))
        case ContentPart(type="binary", id=str(file_id)):
            return NamedFile(check_id(file_id))
        case ContentPart(type="binary", url=str(url), filename=name):
            return _of_url(url, name, number)
        case _:
            raise unread(part, number)


def _of_url(url: str, name: str | None, number: int) -> InlineFile:
    if url[:5].lower() != "data:":
        raise InvalidInput(
            "files come as data URLs, or as the id of an attachment: addresses are not fetched",
            code="unsupported_content",
            param=f"messages[{number}].content",
        )
    return of_data_url(url, name)


def unread(part: ContentPart, number: int) -> InvalidInput:
    """Return the error for a part that is not read. number: the position of its message."""
    return InvalidInput(
        f"messages have text, images and documents: a part of the type {part.type[:40]} is not read so",
        code="unsupported_content",
        param=f"messages[{number}].content",
    )
