"""What D1 is owed for a run whose texts were erased before it had ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from retain.agents.runs.owed import RETURNING_WEBHOOKS
from retain.outbox import OwedStatement


@dataclass(frozen=True, slots=True)
class CloseErasedRun(OwedStatement):
    """The run has ended as cancelled. What it had spent by then stays: costs and the quota of its day count it."""

    NAME: ClassVar[str] = "close_erased_run"
    SQL: ClassVar[str] = f"""
        UPDATE agent_runs SET status = 'cancelled', output = NULL, error = ?, completed_at_ms = ?, waiting_for = NULL,
          texts = CASE texts WHEN 'removed' THEN 'kept' ELSE texts END WHERE run_id = ? {RETURNING_WEBHOOKS}
    """  # noqa: S608

    error: str
    completed_at_ms: int
    run_id: str

    @classmethod
    def of(cls, run_id: str, now_ms: int) -> CloseErasedRun:
        """Return the end of a run that was erased at a time."""
        error = {"code": "erased", "message": "what the run was about was erased"}
        return cls(json.dumps(error), now_ms, run_id)
