"""Sources of candidates in D1: word statistics, full text, exact terms, fresh vectors and neighbours.

Every query names the tenant and the visible scopes, and asks only for records that are valid at the time in question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from retain.memory.filters import FIELDS, UNCONDITIONAL
from retain.memory.recall.evidence import REACH, SEAM, STEMS_EACH
from retain.memory.recall.languages.kinds import KINDS
from retain.memory.recall.languages.reading import indexed_phrases
from retain.memory.recall.preparation import SPAN, WINDOW_LIMIT
from retain.memory.recall.words import scope_tag, tagged
from retain.memory.records.narrowing import Lookup
from retain.memory.records.record import Record
from retain.memory.records.rows import RECORD_COLUMNS, outside_gaps
from retain.memory.scope import Reach
from retain.ports import SqlValue, Statement

STANDING_CANDIDATES = 20
"""The most standing instructions that are candidates for a request."""
STANDING_LIMIT = 400
"""A record with a phrase of instruction has at most this many characters: in a longer text it is mentioned in passing."""
_TEXT_COLUMNS = ("length", "terms", "names_time", "asking", "signature")
"""What ranking reads of a text."""
_OF_TURN = ("number", "tenant_id", "scope_id", "conversation", "position", *_TEXT_COLUMNS)
"""What is read of a turn."""
_PLACE_FIELDS = {"conversation": "conversation", "speaker": "speaker", "said_at_ms": "at_ms"}
"""Fields of a filter that are in a record's utterance, and their names there."""
FIRST, FIRST_WHOLE = 25, 4000
"""The best of the chosen records are read whole up to this many characters …"""
WHOLE = 800
"""… and others, and the turns next to them, up to these. Longer ones are read again if they are hits."""
ANCHORS, ADJACENT = 10, 5
"""Of the best of the chosen records, how many bring what was recorded just before and after, and how many on each side."""
EXACT_LIMIT = 50
"""The newest records with an exact term that are looked at."""
EARLIER_LIMIT = 1000
"""The most texts that were known at a time in the past, and edited since, that are ranked by their signatures."""
KEPT_STATEMENTS = 32
"""The most texts of each large statement that are kept: which one is needed depends on how many words a query has."""
SEPARATOR = "\x1e"
"""Between texts of JSON, none of which contains it."""
_SAME_CONVERSATION = "p.tenant_id = {0}.tenant_id AND p.scope_id = {0}.scope_id AND p.conversation = {0}.conversation"
_PREVIOUS = f"""
CASE WHEN n.position BETWEEN 1 AND {SEAM - 1} THEN n.position - 1 WHEN n.conversation IS NOT NULL THEN
(SELECT MAX(p.position) FROM memory_search p WHERE {_SAME_CONVERSATION.format("n")} AND p.position < n.position) END
"""
"""The position of the turn before `memory_search n`, read only where a seam may lie between."""

_ADJACENT = "(SELECT json_group_array(number) FROM ({}))".format(
    " UNION ALL ".join(
        "SELECT * FROM (SELECT s.number FROM memory_search s WHERE s.tenant_id = c.tenant_id AND s.scope_id = c.scope_id"
        f" AND s.conversation IS NULL AND s.number {side} c.number ORDER BY s.number {order} LIMIT {ADJACENT})"
        for side, order in (("<", "DESC"), (">", "ASC"))
    )
)
"""The numbers of what was recorded in the same scope before and after `memory_records c`, outside conversations."""


@dataclass(frozen=True, slots=True)
class TextIndex:
    """Where texts are indexed: full text, its vocabulary, and how a number leads to a record."""

    full_text: str
    vocabulary: str
    records: str


PRESENT = TextIndex("memory_text", "memory_vocabulary", "CROSS JOIN memory_records r ON r.number = {number}")
"""The texts that records have now."""
EARLIER = TextIndex(
    "memory_earlier_text",
    "memory_earlier_vocabulary",
    "CROSS JOIN memory_earlier e ON e.number = {number} CROSS JOIN memory_records r ON r.id = e.record_id",
)
"""The texts that records had earlier (`retain.memory.earlier_texts`)."""


@dataclass(frozen=True, slots=True)
class Visible:
    """What may be seen: the scopes within reach, the time for which it is valid, and a condition on `memory_records r`.

    known_at_ms: a time in the past, to see what was known then; None for what is known now. Records that changed since then
    pass `where`, and are filtered later, in the state that their events give for that time: `meeting` asks whether it meets
    the condition. lookups: how indexes find what meets it now; none if they do not.
    """

    reach: Reach
    at_ms: int
    known_at_ms: int | None
    condition: str
    condition_values: tuple[SqlValue, ...]
    lookups: tuple[Lookup, ...] = ()

    @property
    def tenant_id(self) -> str:
        """The tenant."""
        return self.reach.tenant_id

    @property
    def scope_ids(self) -> tuple[str, ...]:
        """The scopes within reach."""
        return self.reach.scope_ids

    @property
    def is_filtered(self) -> bool:
        """Whether there is a condition."""
        return self.condition != UNCONDITIONAL

    @property
    def texts(self) -> tuple[TextIndex, ...]:
        """Where the texts are found that may be seen."""
        return (PRESENT,) if self.known_at_ms is None else (PRESENT, EARLIER)

    def where(self, texts: TextIndex | None = None) -> tuple[str, tuple[SqlValue, ...]]:
        """Return the condition that a row of `memory_records r` must meet, and its values.

        texts: where the row's text was found; then it must be the one that was known.
        """
        within, scopes = self.reach.predicate("r")
        valid = (
            "(r.valid_to_ms IS NULL OR r.valid_to_ms > ?) AND (r.expires_at_ms IS NULL OR r.expires_at_ms > ?)"
            f" AND r.valid_from_ms <= ? AND {outside_gaps('?')} AND {self.condition}"
        )
        values = (*[self.at_ms] * 5, *self.condition_values)
        known = self.known_at_ms
        if known is None:
            return f"{within} AND {valid}", (*scopes, *values)
        then = earlier_then("e", known)
        was_known = f" AND {then}" if texts is EARLIER else ""
        if texts is PRESENT:
            was_known = f" AND NOT EXISTS (SELECT 1 FROM memory_earlier e WHERE e.record_id = r.id AND {then})"
        return (
            f"{within} AND r.recorded_at_ms <= ? AND (({valid}) OR r.updated_at_ms > ?){was_known}",
            (*scopes, known, *values, known),
        )


def meeting(condition: str, values: Sequence[SqlValue], records: Sequence[Record]) -> Statement:
    """Return the statement for the ids of the given records that meet a condition, in the state that is given.

    D1 evaluates them like its rows, so a filter means the same for the past as for the present.
    """
    columns = ", ".join(f"value ->> '{name}' AS {name}" for name in ("id", *FIELDS))
    given = [
        {name: getattr(record, name) for name in ("id", "metadata", *FIELDS) if hasattr(record, name)}
        | {name: getattr(record.utterance, own, None) for name, own in _PLACE_FIELDS.items()}
        for record in records
    ]
    return (
        f"SELECT r.id FROM (SELECT {columns}, value -> 'metadata' AS metadata FROM json_each(?)) r WHERE {condition}",
        (json.dumps(given), *values),
    )


def earlier_then(table: str, at_ms: int) -> str:
    """Return the condition that a row of `memory_earlier` has the text that was known at a time."""
    return f"{table}.from_ms <= {at_ms:d} AND {table}.until_ms > {at_ms:d}"


def exact_term(visible: Visible, phrase: Sequence[str], texts: TextIndex) -> Statement:
    """Return the statement for the ids of the newest records that contain a phrase word for word."""
    where, values = visible.where(texts)
    match = " OR ".join(f'"{" ".join(tag + stem for stem in phrase)}"' for tag in tags_of(visible)) or '""'
    return (
        f"SELECT r.id FROM (SELECT rowid AS number FROM {texts.full_text} WHERE {texts.full_text} MATCH ?"
        f" ORDER BY rowid DESC LIMIT {EXACT_LIMIT}) f {texts.records.format(number='f.number')} WHERE {where}",
        (match, *values),
    )


def standing(visible: Visible, language: str, texts: TextIndex) -> Statement:
    """Return the statement for the ids of the newest records that have a language's phrase of standing instructions."""
    where, values = visible.where(texts)
    phrases = indexed_phrases(KINDS[language].standing, language)
    match = " OR ".join([f'"{tagged(tag, list(phrase))}"' for tag in tags_of(visible) for phrase in phrases])
    return (
        f"SELECT r.id FROM (SELECT rowid AS number FROM {texts.full_text} WHERE {texts.full_text} MATCH ?"
        f" ORDER BY rowid DESC LIMIT {STANDING_CANDIDATES}) f {texts.records.format(number='f.number')} WHERE {where}"
        f" AND length(r.content) <= {STANDING_LIMIT}",
        (match or '""', *values),
    )


def tags_of(visible: Visible) -> list[str]:
    """Return the tags under which the words of the visible scopes are indexed."""
    return [scope_tag(visible.tenant_id, scope_id) for scope_id in visible.scope_ids]


def earlier(visible: Visible, model: str) -> Statement:
    """Return the statement for [id, signature] of the texts that were known and are no longer, as one JSON array.

    Those that were replaced first come first. They have no vectors in the index. model: whose signatures to read.
    """
    return (
        "SELECT json_group_array(json_array(record_id, signature)) AS found FROM ("
        "SELECT e.record_id, e.signature FROM memory_earlier e WHERE e.tenant_id = ?"
        f" AND {earlier_then('e', visible.known_at_ms or 0)} AND (? OR e.scope_id IN (SELECT value FROM json_each(?)))"
        " AND e.embedding_model = ? AND e.signature <> '0' ORDER BY e.until_ms, e.number LIMIT ?)",
        (visible.tenant_id, int(visible.reach.whole), json.dumps(visible.scope_ids), model, EARLIER_LIMIT),
    )


def recorded(visible: Visible, ids: Sequence[str]) -> Statement:
    """Return the statement for [id, recorded_at_ms, whether it may be seen] of records, as one JSON array."""
    where, values = visible.where()
    return (
        f"SELECT json_group_array(json_array(r.id, r.recorded_at_ms, {where})) AS found"
        " FROM json_each(?) c CROSS JOIN memory_records r ON r.id = c.value",
        (*values, json.dumps(ids)),
    )


def _nearby(side: str, order: str) -> str:
    """Return the position of the farthest turn on one side of `memory_search i` that is context; its own if there is none.

    Positions order the turns of a conversation, and numbers may be missing between them.
    """
    there = f"i.position {'-' if side == '<' else '+'} {SPAN}"
    return (
        "CASE WHEN i.span = 0 THEN i.position"
        f" WHEN EXISTS (SELECT 1 FROM memory_search p WHERE {_SAME_CONVERSATION.format('i')} AND p.position = {there})"
        f" THEN {there} ELSE COALESCE((SELECT p.position FROM memory_search p WHERE {_SAME_CONVERSATION.format('i')}"
        f" AND p.position {side} i.position ORDER BY p.position {order} LIMIT 1 OFFSET {SPAN - 1}),"
        f" (SELECT {'MIN' if side == '<' else 'MAX'}(p.position) FROM memory_search p"
        f" WHERE {_SAME_CONVERSATION.format('i')}), i.position) END"
    )


def with_neighbours(
    visible: Visible,
    ids: Sequence[str],
    stems: Sequence[Sequence[str]],
    *,
    adjacent: bool,
    met: Mapping[str, int] | None = None,
    preferring: str | None = None,
) -> Statement:
    """Return the statement for the rows of these records and of the turns around them: `found`, as `SearchRow` has them.

    The Worker gets one text instead of some hundred rows: converting each value costs more than finding it. Of a text it
    gets which of the `stems` it has, not its words. A turn next to several of the records is in it several times: finding
    that out here would read more rows. `whole` has each row's record as JSON of `RECORD_COLUMNS`, with `SEPARATOR` between,
    if it is short, and if it is one of the records or next to one.

    adjacent: what was recorded just before and after the first of them, outside conversations, is in it, too: what belongs
    to one event is recorded together, and may share no word with the query. met: the numbers of all records that meet the
    condition, by id, if that is known: then no other is read. preferring: the language in which a text may state a
    preference; None if none is looked for.
    """
    where, values = visible.where()
    asked = {
        "ids": ids,
        "anchors": ids[:ANCHORS] if adjacent else [],
        "terms": [f" {term} " for forms in stems for term in forms],
        "met": ""
        if met is None
        else f",{','.join(map(str, met.values()))},",  # a text: each element of a list is a row
    }
    # of what was found without the filter, what does not meet it brings no neighbours
    is_chosen, own = (where, values) if visible.is_filtered and met is None else ("true", ())
    forms = tuple(map(len, stems))
    sql = _with_neighbours(forms, visible.known_at_ms, where, is_chosen, met is not None, preferring)
    return sql, (json.dumps(asked), *own, *values)


@lru_cache(maxsize=KEPT_STATEMENTS)
def _with_neighbours(
    forms: tuple[int, ...], known: int | None, where: str, is_chosen: str, has_met: bool, preferring: str | None
) -> str:
    """Return the text of the statement. forms: how many terms each stem has. is_chosen: a condition on the records."""
    then = "" if known is None else f"LEFT JOIN memory_earlier e ON e.record_id = r.id AND {earlier_then('e', known)}"
    text = {name: f"n.{name}" if known is None else f"COALESCE(e.{name}, n.{name})" for name in _TEXT_COLUMNS}
    spaced = "n.spaced" if known is None else "COALESCE(' ' || e.terms || ' ', n.spaced)"
    near = f"(n.nearness <= {REACH} OR n.nearness >= {SEAM - REACH})"
    of_candidates = (
        *("r.number", "r.content_hash", "r.importance", "r.confidence", "r.speaker"),
        *(text["names_time"], text["asking"], _prefers(text["length"], spaced, preferring)),
    )
    whole = (
        f"CASE WHEN n.length <= CASE WHEN place < {FIRST} THEN {FIRST_WHOLE} ELSE {WHOLE} END AND nearness <= {REACH}"
        f" THEN json_array({', '.join(f'r.{column}' for column in RECORD_COLUMNS)}) ELSE '' END"
    )
    is_met = "instr(?1 ->> '$.met', ',' || {} || ',')" if has_met else "true"
    # The condition applies to neighbours as well: a record that is not visible or is filtered out lends no words.
    return f"""
        WITH around AS ({_around(is_chosen, is_met)})
        SELECT json_group_array(json_array(
          n.nearness, r.id, n.scope_id, n.conversation, n.position, {_PREVIOUS}, COALESCE(r.said_at_ms, r.valid_from_ms),
          {_stems_in(spaced, forms)},
          {text["length"]}, {"0" if known is None else "e.number IS NOT NULL"},
          CASE WHEN n.nearness <= {REACH + 1} OR n.nearness >= {SEAM - REACH - 1} THEN {text["signature"]} END,
          {", ".join(f"CASE WHEN {near} THEN {column} END" for column in of_candidates)}
        )) AS found, group_concat({whole if known is None else "''"}, char({ord(SEPARATOR)})) AS whole
        FROM around n CROSS JOIN memory_records r ON r.number = n.number {then}
        WHERE {where}
        """


def _prefers(length: str, spaced: str, language: str | None) -> str:
    """Return an expression for whether a text states a preference, in a language. One too long to count is not read."""
    if language is None:
        return "0"
    phrases = indexed_phrases(KINDS[language].preferring, language)
    stated = " OR ".join(" AND ".join(f"instr({spaced}, ' {term} ')" for term in phrase) for phrase in phrases)
    return f"{length} <= {WINDOW_LIMIT} AND ({stated})"


def _around(is_chosen: str, is_met: str) -> str:
    """Return SQL for the chosen records with the turns around them, and for what was recorded just before and after them.

    A row of a table that a statement makes for itself counts like any other, so none is made. is_chosen: a condition on the
    chosen `memory_records r`. is_met: a condition on a number, which it has as `{}`.
    """
    return f"""
        SELECT {", ".join(f"COALESCE(n.{name}, i.{name}) AS {name}" for name in _OF_TURN)},
          ' ' || COALESCE(n.terms, i.terms) || ' ' AS spaced, COALESCE(ABS(n.position - i.position), 0) AS nearness,
          c.key AS place
        FROM json_each(?1, '$.ids') c CROSS JOIN memory_records r ON r.id = c.value
        CROSS JOIN memory_search i ON i.number = r.number
        LEFT JOIN memory_search n ON n.tenant_id = i.tenant_id AND n.scope_id = i.scope_id
          AND n.conversation = i.conversation AND n.position BETWEEN {_nearby("<", "DESC")} AND {_nearby(">", "ASC")}
        WHERE {is_chosen} AND {is_met.format("COALESCE(n.number, i.number)")}
        UNION ALL
        SELECT {", ".join(f"i.{name}" for name in _OF_TURN)}, ' ' || i.terms || ' ', {REACH}, {FIRST}
        FROM json_each(?1, '$.anchors') a CROSS JOIN memory_records c ON c.id = a.value
        CROSS JOIN json_each({_ADJACENT}) b CROSS JOIN memory_search i ON i.number = b.value
        WHERE {is_met.format("b.value")}
        """


def _stems_in(spaced: str, forms: Sequence[int]) -> str:
    """Return an expression for which of the statement's stems a text has: a JSON array of numbers of `STEMS_EACH` bits.

    forms: how many terms each of them has.
    """
    places = iter(range(sum(forms)))
    found = [" OR ".join(f"instr({spaced}, ?1 ->> '$.terms[{next(places)}]') > 0" for _ in range(own)) for own in forms]
    bits = [f"({one}) << {place % STEMS_EACH}" for place, one in enumerate(found)]
    groups = [bits[at : at + STEMS_EACH] for at in range(0, len(bits), STEMS_EACH)]
    return f"json_array({', '.join(' | '.join(f'({bit})' for bit in group) for group in groups)})"
