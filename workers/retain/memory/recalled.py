"""Recognise recalled text, so that what was remembered is never learned again.

An agent's context has remembered text inside a fence, `<memory section="…" note="…">` to `</memory>`, and the tool
`recall_memory` answers with JSON whose `memories` have ids. Both reappear when a model repeats what it read, or when
somebody ingests a transcript of a run.
"""

from __future__ import annotations

import re
from dataclasses import replace

from retain.errors import InvalidInput
from retain.json_text import read_json_within
from retain.memory.recall.wording import undisguised
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.semantic import SemanticMemory, StoreResult

# Attributes have no angle brackets. The bound keeps the search linear in texts full of open tags.
_MARK = re.compile(
    r"(?P<escaped>&lt;)?(?(escaped)|<)(?:(?P<close>/)memory\s*|memory(?P<attributes>\s[^<>]{0,300}?)?)(?(escaped)&gt;|>)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\ssection\s*=", re.IGNORECASE)
_ANSWER = re.compile(r'\{\s*"memories"\s*:\s*\[')
_CUT_ANSWER = re.compile(r'\{\s*"memories"\s*:\s*\[\s*\{\s*"id"\s*:\s*"[0-7][0-9A-HJKMNP-TV-Z]{25}"')


def without_recalled(text: str) -> str:
    """Return the text without what came from recall; the unchanged text when nothing did.

    All text after a fence that is not closed, and all text before a closing mark without an opening one, counts as
    recalled: the other mark was cut off. Tags named `memory` without a section are ordinary text. The parts that are left
    are joined by a line break. Marks with invisible characters or look-alike letters count, too.
    """
    own = _outside(text)
    if text.isascii():
        return own
    kept = _outside(undisguised(text))
    # Undisguising also makes spaces of other characters, as NFKC does.
    return own if "".join(kept.split()) == "".join(undisguised(own).split()) else kept


async def store_unrecalled(memory: SemanticMemory, new: NewRecord, source: RecordSource) -> StoreResult:
    """Store the content without what came from recall, unless a visible record states it in the same words already.

    See `SemanticMemory.store_stated_once`. Raises: InvalidInput (code `recalled_text`) when nothing is left; as that.
    """
    content = without_recalled(new.content)
    if not content.strip():
        raise InvalidInput("this text was recalled; it is already stored", code="recalled_text")
    return await memory.store_stated_once(replace(new, content=content), source)


def _outside(text: str) -> str:
    while True:
        kept = _outside_answers(_outside_fences(text))
        if kept == text:
            return text
        text = kept


def _outside_fences(text: str) -> str:
    kept: list[str] = []
    start, depth, escaped, bare = 0, 0, False, 0
    for mark in _MARK.finditer(text):
        closing, labelled = mark["close"] is not None, _LABEL.search(mark["attributes"] or "") is not None
        if depth:
            # Inside a fence only marks of its own kind count: in an unescaped fence, an escaped mark is somebody's text.
            if (mark["escaped"] is not None) == escaped and (closing or labelled):
                depth += -1 if closing else 1
                start = mark.end()
        elif not closing and labelled:
            kept.append(text[start : mark.start()])
            depth, escaped = 1, mark["escaped"] is not None
        elif not closing:
            bare += 1
        elif bare:
            bare -= 1
        else:
            kept = [""]
            start = mark.end()
    if not kept:
        return text
    return _joined([*kept, "" if depth else text[start:]])


def _outside_answers(text: str) -> str:
    kept: list[str] = []
    start = 0
    for found in _ANSWER.finditer(text):
        if found.start() >= start and (end := _end_of_answer(text, found.start())) is not None:
            kept.append(text[start : found.start()])
            start = end
    return _joined([*kept, text[start:]]) if kept else text


def _end_of_answer(text: str, start: int) -> int | None:
    """Return the end of the recall answer that starts here, None if none does; a truncated answer ends with the text."""
    try:
        value, end = read_json_within(text, start)
    except ValueError:
        return len(text) if _CUT_ANSWER.match(text, start) else None
    memories = value["memories"] if isinstance(value, dict) else None
    if not isinstance(memories, list):
        return None
    ours = all(isinstance(memory, dict) and {"id", "content"} <= memory.keys() for memory in memories)
    return end if ours else None


def _joined(parts: list[str]) -> str:
    return "\n".join([part.strip() for part in parts if part.strip()])
