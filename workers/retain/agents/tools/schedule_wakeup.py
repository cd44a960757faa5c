"""`schedule_wakeup`: an agent lets its own instance run again at a time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.schedule import NewSchedule
from retain.agents.calls.timing import IanaZone, Timing
from retain.agents.calls.user import User
from retain.agents.tools.built_in import CallContext, ToolResult, refuse_unknown, text_argument
from retain.errors import Conflict, InvalidInput
from retain.json_text import JsonObject
from retain.models.chat import ToolSpec
from retain.ports import Clock, TimeZones
from retain.roles.principals import agent_of_type

MAX_WAKEUP_INPUT_BYTES = 8 * 1024
"""Longest text with which an agent wakes itself, in bytes of UTF-8."""
_MINUTE_MS = 60_000
_SPEC = ToolSpec(
    "schedule_wakeup",
    "Wake yourself later in this conversation, once: at the time you are asked the input. Give in_minutes or at.",
    {
        "type": "object",
        "properties": {
            "input": {"type": "string", "description": "What to do then, as one self-contained request."},
            "in_minutes": {"type": "integer", "minimum": 1, "description": "After how many minutes."},
            "at": {
                "type": "string",
                "description": "When, as 2026-11-23T09:30; in the user's time zone unless it has an offset.",
            },
        },
        "required": ["input"],
        "additionalProperties": False,
    },
)


class ScheduleWakeup:
    """`schedule_wakeup`: create a schedule for one time in the run's own instance, for its user. It takes no scope."""

    idempotent = True
    spec = _SPEC

    def __init__(self, instance: InstanceClient, request: RunRequest, clock: Clock, zones: TimeZones) -> None:
        """instance: the run's own. request: of the run that wakes it."""
        self._instance = instance
        self._request = request
        self._clock = clock
        self._zones = zones

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Return the schedule's id and time. Raises: as `Schedules.create`; InvalidInput (code `invalid_arguments`)."""
        refuse_unknown(arguments, {"input", "in_minutes", "at"})
        text = text_argument(arguments, "input")
        if len(text.encode()) > MAX_WAKEUP_INPUT_BYTES:
            raise InvalidInput(f"input has at most {MAX_WAKEUP_INPUT_BYTES} bytes", code="invalid_arguments")
        asked = RunRequest(
            text,
            idempotency_key=f"wakeup:{context.key}",
            user=self._request.user,
            by=agent_of_type(self._instance.identity.agent_type),
        )
        at_ms = self._at_ms(arguments, context.user)
        try:
            made = await self._instance.schedule(NewSchedule(asked, Timing(None, None, at_ms)))
        except Conflict as error:
            if error.code != "idempotency_key_reused":
                raise
            # The same call before a crash, which computed its time at another moment.
            return ToolResult(json.dumps({"scheduled": True}))
        return ToolResult(json.dumps({"schedule_id": made["schedule_id"], "at": _shown(at_ms)}))

    def _at_ms(self, arguments: JsonObject, user: User | None) -> int:
        minutes, at = arguments.get("in_minutes"), arguments.get("at")
        if (minutes is None) is (at is None):
            raise InvalidInput("give either in_minutes or at", code="invalid_arguments")
        if minutes is not None:
            if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes < 1:
                raise InvalidInput("in_minutes must be a whole number from 1", code="invalid_arguments")
            return self._clock() + minutes * _MINUTE_MS
        try:
            local = datetime.fromisoformat(text_argument(arguments, "at"))
            if local.tzinfo is None:
                zone = None if user is None else user.timezone
                local = local.replace(tzinfo=UTC if zone is None else IanaZone(zone, self._zones))
            return (local - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
        except (ValueError, OverflowError) as error:
            raise InvalidInput("at must be a time as 2026-11-23T09:30", code="invalid_arguments") from error


def _shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
