"""Italian."""

from __future__ import annotations

from retain.ingest.languages.italian import commitments, person, tastes
from retain.ingest.languages.italian.speech import AFTER_ENDED, SPEECH, THINGS, ended_phrase, endings
from retain.ingest.languages.italian.vocabulary import NAMES, PARTS
from retain.ingest.languages.language import Language

ITALIAN = Language(
    code="it",
    speech=SPEECH,
    things=THINGS,
    parts=PARTS,
    rules=(*person.RULES, *tastes.RULES, *commitments.RULES),
    endings=endings,
    after_ended=AFTER_ENDED,
    ended_phrase=ended_phrase,
    names=NAMES,
)
