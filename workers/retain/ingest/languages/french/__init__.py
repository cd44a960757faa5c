"""French."""

from __future__ import annotations

from retain.ingest.languages.french import commitments, person, tastes
from retain.ingest.languages.french.speech import AFTER_ENDED, SPEECH, THINGS, ended_phrase, endings
from retain.ingest.languages.french.vocabulary import NAMES, PARTS
from retain.ingest.languages.language import Language

FRENCH = Language(
    code="fr",
    speech=SPEECH,
    things=THINGS,
    parts=PARTS,
    rules=(*person.RULES, *tastes.RULES, *commitments.RULES),
    endings=endings,
    after_ended=AFTER_ENDED,
    ended_phrase=ended_phrase,
    names=NAMES,
)
