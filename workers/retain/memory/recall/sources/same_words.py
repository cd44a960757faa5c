"""The record that states what a text states, in the same words: found by all of its words, without a vector."""

from __future__ import annotations

from collections.abc import Sequence

from retain.memory.recall.candidates import PRESENT, Visible, tags_of
from retain.memory.recall.languages.terms import all_terms, detected, telling_terms
from retain.memory.recall.wording import certain_words, normalised, wording
from retain.memory.records.events import KnownRecord
from retain.memory.records.rows import LAST_EVENT, known_of
from retain.memory.scope import Reach, View
from retain.ports import SqlResult, Statement

TERMS = 32
"""The words of a text that a record must have, all of them: these find few enough."""
NEWEST = 100
"""The newest records with all of these words that are looked at …"""
COMPARED = 20
"""… and those of them that are compared: the ones of the most similar length."""


def with_its_words(tenant_id: str, scope_ids: Sequence[str], content: str, at_ms: int) -> Statement:
    """Return the statement for records of the scopes, valid at a time, that have the words of a text. See `same_in`."""
    visible = Visible(Reach(tenant_id, tuple(scope_ids)), at_ms, None, "1", ())
    where, values = visible.where()
    return (
        f"SELECT r.*, {LAST_EVENT} FROM (SELECT rowid AS number FROM {PRESENT.full_text} WHERE {PRESENT.full_text} MATCH ?"
        f" ORDER BY rowid DESC LIMIT {NEWEST}) f {PRESENT.records.format(number='f.number')} WHERE {where}"
        f" ORDER BY ABS(length(r.content) - ?), r.number DESC LIMIT {COMPARED}",
        (_expression(visible, content), *values, len(content)),
    )


def same_in(found: SqlResult, content: str) -> KnownRecord | None:
    """Return the record that says the same in the same words among those found; None if none does.

    See `retain.memory.recall.wording`. One that differs in case and spacing alone comes first.
    """
    records = [known_of(row) for row in found.rows]
    equal, same = normalised(content), wording(content)
    alike = next((one for one in records if normalised(one.record.content) == equal), None)
    return alike or next((one for one in records if same and wording(one.record.content) == same), None)


def visible_scopes(view: View) -> tuple[str, ...]:
    """Return the ids of the scopes in a view."""
    return tuple(node.scope_id for node in view.nodes)


def _expression(visible: Visible, content: str) -> str:
    """Return what full text is asked: every certain word of the text, under the tag of one scope. Without any, nothing."""
    text, code = certain_words(content), detected(content)
    terms = telling_terms(text, code) or all_terms(text, code)
    wanted = [(term, *forms) for term, forms in list(terms.items())[:TERMS]]
    each = [" AND ".join(f"({_either(tag, forms)})" for forms in wanted) for tag in tags_of(visible)] if wanted else []
    return " OR ".join(f"({one})" for one in each) or '""'


def _either(tag: str, terms: Sequence[str]) -> str:
    return " OR ".join(f'"{tag}{term}"' for term in terms)
