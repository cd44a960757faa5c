"""The tables of runs: what an instance's outbox writes to D1."""

from __future__ import annotations

from dataclasses import replace

from retain.tenants.tables import TenantTable, Texts


def _asked_in(logged: object) -> object:
    """Return what a run was asked and had in its context, from its logged input."""
    if not isinstance(logged, dict):
        return logged
    seen = [episode.get("content") for episode in logged.get("episodes", [])]
    return [logged.get("input"), logged.get("metadata"), logged.get("attachments"), seen]


def _requested_in(request: object) -> object:
    """Return what a run was asked, by whom and for whom, from its stored request."""
    return (
        [request.get(name) for name in ("input", "metadata", "user", "attachments")]
        if isinstance(request, dict)
        else request
    )


def _scheduled_in(request: object) -> object:
    """Return what the runs of a schedule are asked, and the key of its creation, from its stored request."""
    key = request.get("idempotency_key") if isinstance(request, dict) else None
    return [_requested_in(request), key]


def _read_in(context: object) -> object:
    """Return the texts that a run's model reads first, from its stored context."""
    if not isinstance(context, dict):
        return context
    return [
        [message.get("content"), message.get("attachments"), _arguments_in(message)]
        for message in context.get("messages", [])
    ]


def _arguments_in(message: dict[str, object]) -> object:
    calls = message.get("tool_calls")
    return [call.get("arguments") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else None


def _values_of(data: object) -> object:
    return list(data.values()) if isinstance(data, dict) else data


_PARKED = Texts(("request", "context", "idempotency_key"), searched={"request": _requested_in, "context": _read_in})

TENANT_TABLES = (
    TenantTable("parked_runs", ("run_id",), texts=replace(_PARKED, whole=("instance_id",)), users="user"),
    TenantTable("run_events", ("run_id", "seq"), users="part", listed="timelines"),
    TenantTable("timelines", ("tenant_id", "run_id"), users="follows"),
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
            "parked_runs": _PARKED,
            "webhook_deliveries": Texts(("error",)),
            "memory_episodes": Texts(("content",)),
            "conversation_messages": Texts(("content", "attachments")),
            "attachment_uses": Texts(("attachment_id",)),
        },
        instances=True,
        users="instance and user",
        begun="model <> ''",  # one that is queued, or ended in the queue, has let its instance serve nobody
    ),
    TenantTable(
        "schedules",
        ("schedule_id",),
        texts=Texts(("request",), whole=("instance_id",), searched={"request": _scheduled_in}),
        instances=True,
        users="served",  # a schedule whose time has not come has let its instance serve nobody
    ),
    TenantTable("agent_versions", ("tenant_id", "agent_type", "version")),
    TenantTable(
        "users", ("tenant_id", "user_id"), texts=Texts(("name",), "name = NULL", whole=("user_id",)), users="user"
    ),
    TenantTable(
        "outbox_failures",
        ("instance_key", "entry_id"),
        texts=Texts(("instance_key", "parameters", "error")),
        users="owed",
        begun="statement NOT IN ('queue_run', 'queue_run_by', 'park_run', 'keep_schedule')",  # as of the rows themselves
    ),
)
