"""German."""

from __future__ import annotations

from retain.ingest.languages.german import commitments, person, tastes
from retain.ingest.languages.german.speech import AFTER_ENDED, SPEECH, THINGS, ended_phrase, endings
from retain.ingest.languages.german.vocabulary import NAMES, PARTS, STATING
from retain.ingest.languages.language import Language

GERMAN = Language(
    code="de",
    speech=SPEECH,
    things=THINGS,
    parts=PARTS,
    rules=(*person.RULES, *tastes.RULES, *commitments.RULES),
    endings=endings,
    after_ended=AFTER_ENDED,
    ended_phrase=ended_phrase,
    names=NAMES,
    stating=STATING,
)
