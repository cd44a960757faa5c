"""The rules of extraction, by language.

A rule skips what it does not understand with certainty: recall still finds a missed fact in the message itself, while a
wrong one misleads. When two rules find the same fact, the earlier one counts.
"""

from __future__ import annotations

from retain.ingest.languages.english import ENGLISH
from retain.ingest.languages.french import FRENCH
from retain.ingest.languages.german import GERMAN
from retain.ingest.languages.italian import ITALIAN
from retain.ingest.languages.language import Language
from retain.ingest.languages.spanish import SPANISH

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN)
