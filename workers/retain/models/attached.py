"""Files that belong to a message: what a conversation keeps of them, which is all but their content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

FileKind = Literal["image", "pdf", "text"]
"""What a file is to a model: a picture, a document with pages, or text that it reads as part of the message."""
FILE_KINDS: tuple[FileKind, ...] = get_args(FileKind)
IMAGE_TOKENS = 1_600
"""About how many tokens an image takes: the most that Anthropic's models count for one.

Source: https://docs.claude.com/en/docs/build-with-claude/vision#calculate-image-costs
"""
PDF_BYTES_PER_TOKEN = 25
"""About how many bytes of a PDF a token has: a page of 50 KB takes about 2,000, as text and as a picture.

Source: https://docs.claude.com/en/docs/build-with-claude/pdf-support#estimate-your-costs
"""
PDF_TOKENS = 2_000
"""About how many tokens the smallest PDF takes."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that belongs to a message. media_type: as in `image/png`. bytes: its size."""

    id: str
    name: str
    media_type: str
    bytes: int

    @property
    def kind(self) -> FileKind:
        """What the file is to a model."""
        if self.media_type == "application/pdf":
            return "pdf"
        return "image" if self.media_type.startswith("image/") else "text"

    @property
    def line(self) -> str:
        """The line that stands for the file where its content is not read."""
        return f"[file {self.name} ({self.media_type}, {self.bytes} bytes): not shown here]"

    def tokens(self, bytes_per_token: float) -> int:
        """Return about how many tokens the content takes. bytes_per_token: of text."""
        match self.kind:
            case "image":
                return IMAGE_TOKENS
            case "pdf":
                return max(PDF_TOKENS, self.bytes // PDF_BYTES_PER_TOKEN)
            case "text":
                return int(self.bytes / bytes_per_token) + len(self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the file as requests, conversations and answers have it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Attached:
        """Return the file from its `to_json` form."""
        return cls(content["id"], content["name"], content["media_type"], int(content["bytes"]))


def attached_in(content: object) -> tuple[Attached, ...]:
    """Return the files from a list of their `to_json` forms; none from anything else."""
    return tuple(map(Attached.from_json, content)) if isinstance(content, list) else ()


def with_lines(text: str, files: Iterable[Attached]) -> str:
    """Return a message's text with a line for each file of which the content is not read."""
    return "\n".join(filter(None, [text, *(file.line for file in files)]))
