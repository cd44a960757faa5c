"""Examples of request bodies, by the names of their operations. A test sends each of them."""

from __future__ import annotations

from collections.abc import Mapping

_MEMORY = {"content": "Ann prefers e-mail.", "kind": "fact", "metadata": {"source": "crm"}}
_MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
EXAMPLES: Mapping[str, object] = {
    "send_gateway_message": _MESSAGE,
    "create_run": {
        "input": "From: ann@shop.example\n\nI want a refund of order AB-2001, it never arrived.",
        "instance_id": "desk",
        "user": {"id": "ann", "name": "Ann", "locale": "en-GB", "timezone": "Europe/London"},
    },
    "run_ag_ui": {
        "threadId": "phone",
        "runId": "5c6f2f9e-4d0f-4f0e-9c59-2f3a0f9b8d11",
        "messages": [{"id": "1", "role": "user", "content": "I want a refund of order AB-2001, it never arrived."}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {"retain": {"user": {"id": "ann"}}},
    },
    "send_agents_message": _MESSAGE,
    "cancel_runs": {"user_id": "ann", "status": "waiting", "reason": "the order was withdrawn"},
    "cancel_run": {"reason": "the customer called"},
    "fork_run": {"turns": 0},
    "resume_run": {"call": "1.0", "decision": "approve", "reason": "checked by phone"},
    "rename_instance": {"title": "Refund of AB-2001"},
    "register_tenant": {"max_memories_per_user": 10_000},
    "set_quotas": {"memories": 100_000, "runs_a_day": 5_000, "tokens_a_day": None},
    "set_default_quotas": {"memories": 1_000_000},
    "grant_role": {"role": "operator"},
    "grant_deployment_role": {"role": "viewer"},
    "create_key": {"name": "web shop", "scopes": ["runs", "memory:read"], "days": 365},
    "change_key": {"origins": ["https://shop.example"]},
    "rotate_key": {"grace_minutes": 60},
    "rotate_webhook": {"grace_minutes": 60},
    "create_token": {"user": "ann", "agent_type": "order_triage", "minutes": 15},
    "create_webhook": {"url": "https://shop.example/hooks", "events": ["run.completed", "run.failed"]},
    "create_schedule": {
        "agent_type": "order_triage",
        "instance_id": "morning",
        "input": "Which orders still wait for a decision?",
        "cron": "30 8 * * MON-FRI",
        "timezone": "Europe/London",
    },
    "change_schedule": {"state": "paused"},
    "move_tenant": {"shard": "DB_1"},
    "define_agent": {
        "description": "Answers customers of the shop.",
        "instructions": "Answer in two sentences.",
        "model": {"provider": "scripted", "script": "order_triage"},
        "delegates": ["refund_decision"],
    },
    "check_agent": {"description": "Answers customers of the shop.", "instructions": "Answer in two sentences."},
    "roll_back_agent": {"version": 1},
    "put_user": {"name": "Ann", "locale": "en-GB", "timezone": "Europe/London"},
    "seed_memories": {"tenant": "acme", "agent_type": "refund_decision", "memories": [_MEMORY]},
    "create_memory": {**_MEMORY, "user_id": "ann"},
    "recall_memories": {"query": "How does Ann want to be reached?", "top_k": 3, "user_id": "ann", "explain": True},
    "update_memory": {"content": "Ann prefers text messages.", "importance": 0.8},
    "ingest_conversation": {
        "conversation": "mail-1",
        "user_id": "ann",
        "messages": [
            {"speaker": "Ann", "content": "I live in Porto.", "at_ms": 1_700_000_000_000},
            {"speaker": "support", "content": "Noted, thank you."},
        ],
    },
    "send_memory_message": _MESSAGE,
    "put_item": {"value": "dark", "user_id": "ann", "ttl_s": 3600},
    "erase_memories": {"user": "ann"},
    "start_restore": {"at_ms": 1_700_000_000_000},
    "put_dataset": {
        "description": "What refund_decision says",
        "target": {"agent": "refund_decision"},
        "thresholds": {"pass_rate": 1.0},
        "cases": [{"id": "first", "input": "ann@shop.example, AB-2001", "expected": {"contains": ["APPROVE"]}}],
    },
    "start_evaluation": {"dataset": "refunds"},
    "advance_key_migration": {"to": 1, "baseline": 0.99},
    "roll_back_key_migration": {"to": 0},
    "record_release": {"release": "2026-11-23"},
    "backfill_keys": {"again": False},
    "record_run_outcome": {"score": 1.0},
}
