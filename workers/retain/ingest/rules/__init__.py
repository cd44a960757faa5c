"""The rules of extraction, as tables: English, careful, for people who speak about themselves.

A rule skips what it does not understand with certainty: recall still finds a missed fact in the message itself, while a
wrong one misleads. When two rules find the same fact, the earlier one counts.
"""

from __future__ import annotations

from retain.ingest.rules import commitments, person, tastes, work

RULES = (*person.RULES, *work.RULES, *tastes.TASTES, *tastes.PEOPLE, *commitments.RULES)
