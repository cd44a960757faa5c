"""The rules of extraction, as tables: English, careful, for people who speak of themselves.

What a rule does not surely understand it leaves alone: a missed fact is still found by recall in the message itself, a
wrong one misleads. Of two rules that give the same fact the earlier one stands.
"""

from __future__ import annotations

from retain.ingest.rules import commitments, person, tastes

RULES = (*person.RULES, *tastes.TASTES, *tastes.PEOPLE, *commitments.RULES)
