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
from retain.memory.recall.wording import normalised, statement, undisguised, wording
from retain.memory.records.record import NewRecord, Record, RecordSource
from retain.memory.semantic import RecallQuery, SemanticMemory, StoreResult

COMPARED = 20
"""How many records, best first, are compared with new content."""
_QUERY_BYTES = 8 * 1024

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
    """Store the content without what came from recall; return the result for the record that has it already, if any.

    A known record of the scope is stored again, so fields that it lacks are added; one of another scope keeps all its own.
    Raises: InvalidInput (code `recalled_text`) when nothing is left; as `SemanticMemory.search` and `store`.
    """
    content = without_recalled(new.content)
    if not content.strip():
        raise InvalidInput("this text was recalled; it is already stored", code="recalled_text")
    known = await known_as(memory, content)
    if known is None:
        return await memory.store(replace(new, content=content), source)
    again = replace(new, content=known.content, utterance=known.utterance)
    return await memory.store_again(known, again, source)


async def known_as(memory: SemanticMemory, content: str) -> Record | None:
    """Return a record, visible from the scope, that says the same in the same words; None if there is none.

    See `retain.memory.recall.wording`. Raises: as `SemanticMemory.search`.
    """
    stated = statement(content) or content
    query = stated.strip().encode()[:_QUERY_BYTES].decode("utf-8", "ignore")
    known = [hit.record for hit in await memory.search(RecallQuery(query, COMPARED))]
    equal, same = normalised(content), wording(content)
    alike = next((record for record in known if normalised(record.content) == equal), None)
    return alike or next((record for record in known if same and wording(record.content) == same), None)


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
