"""The tables of an instance's journal in the object's SQLite, and the statements that write what goes to D1.

`turn_state.due_at_ms`: when a waiting run goes on by itself. `turn_state.resumed`: how often the run was resumed since it
last waited. `cancel_requests`: wishes to stop a delegate's run that came before the run itself.
"""

from __future__ import annotations

from retain.memory.episodes import STATEMENTS as EPISODE_STATEMENTS
from retain.memory.procedures.procedural import SCHEMA as PROCEDURES_SCHEMA
from retain.memory.procedures.procedural import STATEMENTS as PROCEDURE_STATEMENTS

SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS turn_state (
      run_id TEXT PRIMARY KEY,
      idempotency_key TEXT UNIQUE,
      request_hash TEXT NOT NULL,
      status TEXT NOT NULL,
      turn INTEGER NOT NULL,
      request TEXT NOT NULL,
      context TEXT NOT NULL,
      result TEXT,
      resumed INTEGER NOT NULL DEFAULT 0,
      due_at_ms INTEGER,
      created_at_ms INTEGER NOT NULL,
      updated_at_ms INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS run_log (
      run_id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      turn INTEGER NOT NULL,
      kind TEXT NOT NULL,
      data TEXT NOT NULL,
      at_ms INTEGER NOT NULL,
      PRIMARY KEY (run_id, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS cancel_requests (
      idempotency_key TEXT PRIMARY KEY,
      asked_by TEXT NOT NULL,
      reason TEXT,
      at_ms INTEGER NOT NULL
    )
    """,
    PROCEDURES_SCHEMA,
)

STATEMENTS = {
    **EPISODE_STATEMENTS,
    **PROCEDURE_STATEMENTS,
    "start_run": """
        INSERT OR IGNORE INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, input, model, created_at_ms)
        VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?)
    """,
    "wait_run": """
        UPDATE agent_runs SET status = 'waiting', waiting_for = ? WHERE run_id = ? AND completed_at_ms IS NULL
    """,
    "go_on_run": """
        UPDATE agent_runs SET status = 'running', waiting_for = NULL WHERE run_id = ? AND completed_at_ms IS NULL
    """,
    "close_run": """
        UPDATE agent_runs SET status = ?, output = ?, error = ?, steps = ?, input_tokens = ?, output_tokens = ?,
          completed_at_ms = ?, waiting_for = NULL WHERE run_id = ?
    """,
    "append_event": """
        INSERT OR IGNORE INTO run_events (run_id, seq, tenant_id, kind, turn, data, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
    """,
}
