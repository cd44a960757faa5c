"""Spanish."""

from __future__ import annotations

from retain.ingest.languages.language import Language
from retain.ingest.languages.spanish import commitments, person, tastes
from retain.ingest.languages.spanish.speech import AFTER_ENDED, SPEECH, THINGS, ended_phrase, endings
from retain.ingest.languages.spanish.vocabulary import NAMES, PARTS

SPANISH = Language(
    code="es",
    speech=SPEECH,
    things=THINGS,
    parts=PARTS,
    rules=(*person.RULES, *tastes.RULES, *commitments.RULES),
    endings=endings,
    after_ended=AFTER_ENDED,
    ended_phrase=ended_phrase,
    names=NAMES,
)
