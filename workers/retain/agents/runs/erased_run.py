"""What D1 is owed for a run that ends without its instance: its texts were erased, or it is another user's."""

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
        return cls._as(run_id, now_ms, "erased", "what the run was about was erased")

    @classmethod
    def of_another_user(cls, run_id: str, now_ms: int) -> CloseErasedRun:
        """Return the end of a run that its instance has lost, and cannot have again since it serves somebody else."""
        return cls._as(run_id, now_ms, "wrong_user", "the instance lost its storage, and serves another user by now")

    @classmethod
    def _as(cls, run_id: str, now_ms: int, code: str, message: str) -> CloseErasedRun:
        return cls(json.dumps({"code": code, "message": message}), now_ms, run_id)
