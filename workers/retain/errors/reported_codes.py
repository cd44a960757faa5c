"""The codes that answers and run events contain, but no error is raised with: a part of the set in `codes.py`."""

from __future__ import annotations

from typing import Literal

ReportedCode = Literal[
    "answer_too_large",
    "attempted_too_often",
    "cancelled",
    "case_not_ended",
    "context_full",
    "empty_answer",
    "erased",
    "header_mismatch",
    "interrupted",
    "invalid_params",
    "malformed_tool_call",
    "message_changed",
    "missing_capability",
    "no_such_method",
    "outcome_unknown",
    "queue_deadline",
    "records_refused",
    "rejected",
    "resumed_too_often",
    "run_deadline",
    "token_budget",
    "too_many_tool_calls",
    "turn_limit",
    "unsupported_version",
]
