"""Arithmetic with dates, which language models get wrong."""

from __future__ import annotations

from datetime import date

from retain.agents.tools.functions import tool


@tool(idempotent=True)
def days_between(start: date, end: date) -> int:
    """Count the days from one date to another, below zero when the second is the earlier one.

    start: the first date, as 2026-03-01.
    end: the second date, as 2026-03-31.
    """
    return (end - start).days
