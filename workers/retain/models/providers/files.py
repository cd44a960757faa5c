"""Attachments as the wire formats hold them.

A model reads a text file as text of the message, with the file's name: every model takes that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from retain.models.attached import Attached
from retain.models.chat import ChatMessage
from retain.models.embedded import WriteContent, as_base64


def text_of_file(file: Attached, content: bytes) -> str:
    """Return a text file as part of a message."""
    return f"<file name={json.dumps(file.name, ensure_ascii=False)}>\n{content.decode('utf-8', 'replace')}\n</file>"


def shown(message: ChatMessage, contents: Mapping[str, bytes]) -> str:
    """Return a message as text alone, for a model that reads nothing else: a line for each image and PDF."""
    return "\n\n".join(filter(None, [*_texts(message, contents), message.content]))


def _texts(message: ChatMessage, contents: Mapping[str, bytes]) -> Iterator[str]:
    for file in message.attachments:
        content = contents.get(file.id)
        yield file.line if content is None or file.kind != "text" else text_of_file(file, content)


def openai_content(
    message: ChatMessage, contents: Mapping[str, bytes], write: WriteContent = as_base64
) -> str | list[dict[str, object]]:
    """Return the content of a message in OpenAI's format: its text alone where it has no files.

    write: how images and PDFs are written.
    Source: https://platform.openai.com/docs/guides/images-vision, https://platform.openai.com/docs/guides/pdf-files
    """
    if not message.attachments:
        return message.content
    parts = [_openai_part(file, contents.get(file.id), write) for file in message.attachments]
    return [*parts, *([_text(message.content)] if message.content.strip() else [])]


def _openai_part(file: Attached, content: bytes | None, write: WriteContent) -> dict[str, object]:
    if content is None:
        return _text(file.line)
    match file.kind:
        case "text":
            return _text(text_of_file(file, content))
        case "image":
            return {"type": "image_url", "image_url": {"url": _data_url(file, content, write)}}
        case "pdf":
            return {"type": "file", "file": {"filename": file.name, "file_data": _data_url(file, content, write)}}


def anthropic_blocks(
    message: ChatMessage, contents: Mapping[str, bytes], write: WriteContent = as_base64
) -> Iterator[dict[str, object]]:
    """Yield the blocks of a message's files in Anthropic's format, to come before its text.

    write: how images and PDFs are written.
    Source: https://docs.claude.com/en/docs/build-with-claude/vision, https://docs.claude.com/en/docs/build-with-claude/pdf-support
    """
    for file in message.attachments:
        content = contents.get(file.id)
        if content is None or file.kind == "text":
            yield _text(file.line if content is None else text_of_file(file, content))
            continue
        source = {"type": "base64", "media_type": file.media_type, "data": write(content)}
        named = {"title": file.name} if file.kind == "pdf" else {}
        yield {"type": "document" if file.kind == "pdf" else "image", "source": source, **named}


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _data_url(file: Attached, content: bytes, write: WriteContent) -> str:
    return f"data:{file.media_type};base64,{write(content)}"
