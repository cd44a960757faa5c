"""Runs that begin without being asked for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from retain_client.api import AuthenticatedClient
from retain_client.api.api.schedules import (
    change_schedule,
    create_schedule,
    delete_schedule,
    get_schedule,
    list_schedules,
)
from retain_client.api.models.list_schedules_state import ListSchedulesState
from retain_client.api.models.schedule import Schedule
from retain_client.api.models.schedule_body import ScheduleBody
from retain_client.api.models.schedule_state_body import ScheduleStateBody
from retain_client.api.models.schedules import Schedules as SchedulesPage
from retain_client.api.types import Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.values import answered, body_of, given, or_unset


class AsyncSchedules:
    """The schedules of a tenant."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    def list(
        self,
        *,
        agent_type: str | None = None,
        instance_id: str | None = None,
        user_id: str | None = None,
        state: ListSchedulesState | None = None,
        limit: int | None = None,
    ) -> AsyncPages[Schedule]:
        """Return the schedules, the newest first. instance_id: with agent_type. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[Schedule], str | None]:
            response = await list_schedules.asyncio_detailed(
                self._tenant,
                client=self._api,
                cursor=cursor,
                agent_type=or_unset(agent_type),
                instance_id=or_unset(instance_id),
                user_id=or_unset(user_id),
                state=or_unset(state),
                limit=or_unset(limit),
            )
            page = answered(response, SchedulesPage)
            return page.schedules, page.cursor

        return AsyncPages(read)

    async def create(
        self,
        agent_type: str,
        input: str | Mapping[str, Any],  # noqa: A002 -- as the document calls it
        *,
        cron: str | None = None,
        timezone: str | None = None,
        at_ms: int | None = None,
        instance_id: str | None = None,
        user: str | Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Schedule:
        """Create a schedule: with `cron`, or once at `at_ms`.

        idempotency_key: with the same one the same schedule is returned; a new one if absent. Raises: RetainError.
        """
        body = body_of(
            ScheduleBody,
            given(
                agent_type=agent_type,
                input=input,
                cron=cron,
                timezone=timezone,
                at_ms=at_ms,
                instance_id=instance_id,
                user={"id": user} if isinstance(user, str) else user,
                metadata=metadata,
            ),
        )
        response = await create_schedule.asyncio_detailed(
            self._tenant, client=self._api, body=body, idempotency_key=idempotency_key or uuid.uuid4().hex
        )
        return answered(response, Schedule)

    async def get(self, schedule_id: str) -> Schedule:
        """Return a schedule. Raises: RetainError."""
        return answered(await get_schedule.asyncio_detailed(self._tenant, schedule_id, client=self._api), Schedule)

    async def pause(self, schedule_id: str) -> Schedule:
        """Pause a schedule: what is due meanwhile does not begin. Raises: RetainError."""
        return await self._change(schedule_id, "paused")

    async def resume(self, schedule_id: str) -> Schedule:
        """Let a schedule be due again, from its next time on. Raises: RetainError."""
        return await self._change(schedule_id, "active")

    async def delete(self, schedule_id: str) -> None:
        """Delete a schedule. Its runs stay. Raises: RetainError."""
        await delete_schedule.asyncio_detailed(self._tenant, schedule_id, client=self._api)

    async def _change(self, schedule_id: str, state: str) -> Schedule:
        body = ScheduleStateBody.from_dict({"state": state})
        response = await change_schedule.asyncio_detailed(self._tenant, schedule_id, client=self._api, body=body)
        return answered(response, Schedule)
