"""What a webhook is sent: an event of a run, and the run as it is in D1 at that moment."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from retain.json_text import Json, read_own_json
from retain.ports import Row

RUN_COLUMNS = """
r.run_id, r.agent_type, r.instance_id, r.parent_run_id, r.user_id, r.started_by, r.status AS run_status, r.output,
r.error AS run_error, r.waiting_for, r.steps, r.input_tokens, r.cached_input_tokens,
r.output_tokens, r.created_at_ms, r.completed_at_ms
"""
"""The columns of `agent_runs r` that a message is made of."""


def message_of(event: str, at_ms: int, run: Row) -> str:
    """Return the body of a message. at_ms: of the event. run: `RUN_COLUMNS`."""
    sent: dict[str, Json] = {
        "type": event,
        "timestamp": datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "data": {
            "run_id": run["run_id"],
            "agent_type": run["agent_type"],
            "instance_id": run["instance_id"],
            "parent_run_id": run["parent_run_id"],
            "user": run["user_id"],
            "by": run["started_by"],
            "status": run["run_status"],
            "output": run["output"],
            "error": _read(run["run_error"]),
            "waiting_for": _read(run["waiting_for"]),
            "steps": run["steps"],
            "usage": {
                "input_tokens": run["input_tokens"],
                "output_tokens": run["output_tokens"],
                "cached_input_tokens": run["cached_input_tokens"],
            },
            "created_at_ms": run["created_at_ms"],
            "completed_at_ms": run["completed_at_ms"],
        },
    }
    return json.dumps(sent, ensure_ascii=False, separators=(",", ":"))


def _read(text: str | None) -> Json:
    found: Json = None if text is None else read_own_json(text)
    return found
