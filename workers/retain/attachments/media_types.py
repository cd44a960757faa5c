"""Which files are taken, and whether a content is what its media type says."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import AsyncIterator

from retain.errors import InvalidInput

PDF = "application/pdf"
IMAGES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
"""How the content of each begins. Every provider takes these four, and most take no other.

Source: https://platform.openai.com/docs/guides/images-vision, https://docs.claude.com/en/docs/build-with-claude/vision
"""
_SIGNATURES = {**IMAGES, PDF: re.compile(rb"%PDF-")}
TEXTS = frozenset(
    {
        "application/json",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
        "application/toml",
        "application/javascript",
        "application/sql",
    }
)
"""Which media types are text besides `text/…`. A content has to be UTF-8."""
UNDECLARED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""What a client sends that does not know the media type. Images and PDFs are recognised by how they begin."""
HEAD_BYTES = 16
MAX_NAME = 200
"""Longest name of a file, in characters."""
_TEXT = re.compile(r"text/[a-z0-9][a-z0-9.+-]{0,63}")
_EXTENSIONS = {"image/jpeg": "jpg", "text/plain": "txt", "text/markdown": "md", "application/x-ndjson": "jsonl"}


def media_type_of(declared: str) -> str:
    """Return the media type of a `content-type`, "" for one that declares nothing.

    Raises: InvalidInput (code `unsupported_media_type`).
    """
    media_type = declared.partition(";")[0].strip().lower()
    if media_type == "image/jpg":
        media_type = "image/jpeg"
    if media_type in UNDECLARED:
        return ""
    if media_type in _SIGNATURES or media_type in TEXTS or _TEXT.fullmatch(media_type):
        return media_type
    raise _unsupported(media_type)


def recognised(head: bytes) -> str:
    """Return the media type of a content that begins so. Raises: InvalidInput (code `unsupported_media_type`)."""
    found = next((name for name, signature in _SIGNATURES.items() if signature.match(head)), None)
    if found is None:
        raise _unsupported("")
    return found


def _unsupported(media_type: str) -> InvalidInput:
    nothing = "the file needs a media type: it does not begin as an image or a PDF does"
    what = f"files of the type {media_type[:100]} are not taken" if media_type else nothing
    known = [*IMAGES, PDF, "text/*", *sorted(TEXTS)]
    return InvalidInput(what, code="unsupported_media_type", accepted=known)


def check_name(name: str | None, media_type: str) -> str:
    """Return a file's name, one after its media type for None.

    Raises: InvalidInput (code `invalid_attachment_name`) for one with a path, or with characters that are not shown.
    """
    if name is None:
        return f"file.{_EXTENSIONS.get(media_type, re.split('[/+.]', media_type)[-1])}"
    hidden = any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in name)
    if not 1 <= len(name) <= MAX_NAME or hidden or not name.strip() or {"/", "\\"} & set(name) or name in (".", ".."):
        raise InvalidInput(
            f"a name has 1 to {MAX_NAME} visible characters, and no path", code="invalid_attachment_name"
        )
    return name


class ContentCheck:
    """Checks a content as it arrives. media_type: as declared."""

    def __init__(self, media_type: str) -> None:
        self._media_type = media_type
        self._signature = _SIGNATURES.get(media_type)
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")

    def take(self, piece: bytes, *, final: bool = False) -> None:
        """Check the next piece. Raises: InvalidInput (code `media_type_mismatch`)."""
        if self._signature is None:
            self._read(piece, final)
            return
        if len(self._head) < HEAD_BYTES:
            self._head += piece[:HEAD_BYTES]
            if (len(self._head) >= HEAD_BYTES or final) and not self._signature.match(self._head):
                raise self._mismatch()
        elif final and not self._signature.match(self._head):
            raise self._mismatch()

    def _read(self, piece: bytes, final: bool) -> None:
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            raise self._mismatch() from error
        if "\0" in text:
            raise self._mismatch()

    def _mismatch(self) -> InvalidInput:
        why = "is not UTF-8 text" if self._signature is None else f"is not {self._media_type}"
        return InvalidInput(f"the content {why}", code="media_type_mismatch", media_type=self._media_type)


async def checked(check: ContentCheck, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces while they are what the check expects. Raises: as `ContentCheck.take`."""
    async for piece in pieces:
        check.take(piece)
        yield piece
    check.take(b"", final=True)
