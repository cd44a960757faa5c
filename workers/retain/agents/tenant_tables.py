"""The tables of runs: what an instance's outbox writes to D1."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts


def _asked_in(logged: object) -> object:
    """Return what a run was asked and had in its context, from its logged input."""
    if not isinstance(logged, dict):
        return logged
    seen = [episode.get("content") for episode in logged.get("episodes", [])]
    return [logged.get("input"), logged.get("metadata"), seen]


def _values_of(data: object) -> object:
    return list(data.values()) if isinstance(data, dict) else data


TENANT_TABLES = (
    TenantTable("run_events", ("run_id", "seq"), users="part"),
    TenantTable(
        "agent_runs",
        ("run_id",),
        texts=Texts(
            ("input", "output", "error"),
            "output = NULL, error = NULL, waiting_for = NULL",
            marked="input",
            whole=("instance_id",),
            searched={"input": _asked_in, "error": _values_of},
        ),
        parts={
            "run_events": Texts(("data",), searched={"data": _values_of}),
            "memory_episodes": Texts(("content",)),
            "conversation_messages": Texts(("content",)),
        },
        instances=True,
        users="instance and user",
    ),
    TenantTable(
        "users", ("tenant_id", "user_id"), texts=Texts(("name",), "name = NULL", whole=("user_id",)), users="user"
    ),
    TenantTable(
        "outbox_failures",
        ("instance_key", "entry_id"),
        texts=Texts(("instance_key", "parameters", "error")),
        users="owed",
    ),
)
