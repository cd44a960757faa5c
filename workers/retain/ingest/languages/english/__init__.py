"""English: its rules as tables, careful, for people who speak about themselves."""

from __future__ import annotations

from retain.ingest.languages.english import commitments, person, tastes, work
from retain.ingest.languages.english.endings import AFTER_ENDED, ended_phrase, endings
from retain.ingest.languages.english.speech import SPEECH
from retain.ingest.languages.english.things import THINGS
from retain.ingest.languages.english.vocabulary import PARTS
from retain.ingest.languages.language import Language

ENGLISH = Language(
    code="en",
    speech=SPEECH,
    things=THINGS,
    parts=PARTS,
    rules=(*person.RULES, *work.RULES, *tastes.TASTES, *tastes.PEOPLE, *commitments.RULES),
    endings=endings,
    after_ended=AFTER_ENDED,
    ended_phrase=ended_phrase,
    names={"colour": "color", "flavour": "flavor", "programme": "program", "theatre": "theater"},
)


def compile_ahead() -> None:
    """Compile what the rules compile when they are used. Staging records it, and an isolate takes that instead."""
    ENGLISH.compile()
