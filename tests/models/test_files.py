"""Attachments on the wire of each format, and what stands for those that are gone or are not read."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from retain.models.attached import Attached
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, MessageWithFiles
from retain.models.providers.anthropic import to_wire as anthropic_wire
from retain.models.providers.openai import to_wire as openai_wire
from retain.models.providers.workers_ai import to_wire as workers_ai_wire
from retain.models.scripted.chat import Script, ScriptedChat
from tests.support.files import PDF, data_url, png

PICTURE = png()
FILES = {
    "image": (Attached("1", "a.png", "image/png", len(PICTURE)), PICTURE),
    "pdf": (Attached("2", "b.pdf", "application/pdf", len(PDF)), PDF),
    "text": (Attached("3", 'c".csv', "text/csv", 4), "é,3".encode()),
    "gone": (Attached("4", "gone.png", "image/png", 9), None),
}
LINE = "[file gone.png (image/png, 9 bytes): not shown here]"
TEXT = '<file name="c\\".csv">\né,3\n</file>'


def request(*names: str, text: str = "Look") -> ChatRequest:
    files = [FILES[name] for name in names]
    message = MessageWithFiles("user", text, attachments=tuple(file for file, _ in files))
    contents = {file.id: content for file, content in files if content is not None}
    return ChatRequest([ChatMessage("system", "Do it."), message], contents=contents)


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def test_openai_s_format_has_parts_in_the_order_of_the_files_and_the_text_last() -> None:
    wire: Any = openai_wire(request(*FILES), model="m", limit_field="max_tokens")
    assert wire["messages"][1]["content"] == [
        {"type": "image_url", "image_url": {"url": data_url(PICTURE)}},
        {"type": "file", "file": {"filename": "b.pdf", "file_data": data_url(PDF, "application/pdf")}},
        text(TEXT),
        text(LINE),
        text("Look"),
    ]
    assert wire["messages"][0]["content"] == "Do it."


def test_anthropic_s_format_has_blocks_before_the_text_and_none_that_is_blank() -> None:
    def source(media_type: str, content: bytes) -> dict[str, str]:
        return {"type": "base64", "media_type": media_type, "data": base64.b64encode(content).decode()}

    wire: Any = anthropic_wire(request(*FILES, text=" "), model="m")
    assert wire["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": source("image/png", PICTURE)},
                {"type": "document", "source": source("application/pdf", PDF), "title": "b.pdf"},
                text(TEXT),
                text(LINE),
            ],
        }
    ]


def test_workers_ai_has_parts_for_images_and_text_alone_without_any() -> None:
    [_, with_image] = workers_ai_wire(request("image", "text"))["messages"]  # type: ignore[misc]
    parts = [{"type": "image_url", "image_url": {"url": data_url(PICTURE)}}, text(TEXT), text("Look")]
    assert with_image["content"] == parts  # type: ignore[has-type]
    [_, without] = workers_ai_wire(request("text"))["messages"]  # type: ignore[misc]
    assert without["content"] == f"{TEXT}\n\nLook"  # type: ignore[has-type]


@pytest.mark.parametrize(
    ("name", "tokens"), [("image", 1_600), ("pdf", 2_000), ("text", 1 + 6), ("gone", 1_600)], ids=FILES.keys()
)
def test_a_file_is_estimated_by_its_kind(name: str, tokens: int) -> None:
    assert FILES[name][0].tokens(4.0) == tokens


def test_a_large_pdf_is_estimated_by_its_size() -> None:
    assert Attached("1", "a.pdf", "application/pdf", 1_000_000).tokens(4.0) == 40_000


async def test_a_script_reads_text_files_and_the_names_of_others() -> None:
    script: Script = {
        "name": "reader",
        "rules": [{"rule": "read", "when": {"says": "é,3"}, "reply": {"text": "{user}"}}],
    }
    reply: ChatReply = await ScriptedChat(script).complete(request("image", "text"))
    assert reply.content == f"[file a.png (image/png, {len(PICTURE)} bytes): not shown here]\n\n{TEXT}\n\nLook"
