"""Runs of agents."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import httpx

from retain_client.api import AuthenticatedClient
from retain_client.api.api.agents import cancel_run, create_run, get_run, resume_run
from retain_client.api.api.costs import list_costs
from retain_client.api.api.forks import fork_run, retry_run
from retain_client.api.api.runs_of_a_tenant import cancel_runs, list_runs
from retain_client.api.models.awaited_approval import AwaitedApproval
from retain_client.api.models.awaited_delegate import AwaitedDelegate
from retain_client.api.models.cancel_body import CancelBody
from retain_client.api.models.cancel_runs_body import CancelRunsBody
from retain_client.api.models.cancelled_run import CancelledRun
from retain_client.api.models.cancelled_runs import CancelledRuns
from retain_client.api.models.costs import Costs
from retain_client.api.models.day_cost import DayCost
from retain_client.api.models.fork_body import ForkBody
from retain_client.api.models.list_costs_purpose import ListCostsPurpose
from retain_client.api.models.listed_run import ListedRun
from retain_client.api.models.resume_body import ResumeBody
from retain_client.api.models.run_body import RunBody
from retain_client.api.models.run_result import RunResult
from retain_client.api.models.run_standing import RunStanding
from retain_client.api.models.runs import Runs as RunsPage
from retain_client.api.types import Response, Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.asynchronous.pause import sleep
from retain_client.asynchronous.run_stream import AsyncRunStream
from retain_client.errors import RetainError
from retain_client.retries import Retries
from retain_client.values import answered, body_of, given, or_unset

Run = RunResult | RunStanding
"""A run that has ended, or one that is open."""


class AsyncRuns:
    """The runs of a tenant's agents."""

    def __init__(self, api: AuthenticatedClient, http: httpx.AsyncClient, retries: Retries, tenant: str) -> None:
        self._api = api
        self._http = http
        self._retries = retries
        self._tenant = tenant

    async def start(
        self,
        agent_type: str,
        input: str | Mapping[str, Any],  # noqa: A002 -- as the document calls it
        *,
        instance_id: str | None = None,
        user: str | Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        attachments: Sequence[str | Mapping[str, Any]] = (),
        output_schema: Mapping[str, Any] | None = None,
        background: bool = False,
        idempotency_key: str | None = None,
    ) -> Run:
        """Run an agent; return the result, or the open run when it waits or is queued.

        instance_id: the conversation, a new one if absent. user: an id, or `id` with `name`, `locale`, `timezone`.
        attachments: ids of uploads, or small files as `data` (base64) with `media_type` and `name`. output_schema: the
        JSON Schema of the object that the answer must be, instead of the definition's. background: return the open run as
        soon as it is recorded. idempotency_key: with the same one the same run is returned; a new one if absent.

        Raises: RetainError; TypeError for a field that a user or a file does not have.
        """
        body = _body(
            input,
            instance_id,
            user,
            metadata,
            attachments,
            output_schema,
            stream=False,
            background=background or None,
        )
        key = idempotency_key or uuid.uuid4().hex
        response = await create_run.asyncio_detailed(
            self._tenant, agent_type, client=self._api, body=body, idempotency_key=key
        )
        return _run(response)

    def stream(
        self,
        agent_type: str,
        input: str | Mapping[str, Any],  # noqa: A002 -- as the document calls it
        *,
        instance_id: str | None = None,
        user: str | Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        attachments: Sequence[str | Mapping[str, Any]] = (),
        output_schema: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncRunStream:
        """Return the events of a run that begins when they are iterated. As `start`."""
        body = _body(input, instance_id, user, metadata, attachments, output_schema, stream=True)
        begin = (body, idempotency_key or uuid.uuid4().hex)
        return AsyncRunStream(self._http, self._retries, self._tenant, agent_type, begin=begin)

    def follow(
        self, agent_type: str, instance_id: str, run_id: str, *, last_event_id: str | None = None
    ) -> AsyncRunStream:
        """Return the events of a run that exists, from its beginning or after an event."""
        run = (instance_id, run_id)
        return AsyncRunStream(self._http, self._retries, self._tenant, agent_type, run=run, last_event_id=last_event_id)

    async def get(self, agent_type: str, instance_id: str, run_id: str) -> Run:
        """Return a run. Raises: RetainError."""
        response = await get_run.asyncio_detailed(self._tenant, agent_type, instance_id, run_id, client=self._api)
        return _run(response)

    async def wait(
        self,
        agent_type: str,
        instance_id: str,
        run_id: str,
        *,
        timeout_s: float = 600.0,
        poll_s: float = 1.0,
    ) -> Run:
        """Return a run once it has ended or waits for an approval, or as it is when the time is up.

        A run whose delegate waits for an approval, or a delegate of that one, waits for it too: its `waiting_for` names the
        delegate's run. It is asked for every `poll_s` seconds; a stream reports it sooner. Raises: RetainError.
        """
        until = time.monotonic() + timeout_s
        while True:
            run = await self.get(agent_type, instance_id, run_id)
            if isinstance(run, RunResult) or await self._waits_for_a_person(run) or time.monotonic() + poll_s > until:
                return run
            await sleep(poll_s)

    async def _waits_for_a_person(self, run: Run) -> bool:
        while isinstance(run, RunStanding):
            awaited = run.waiting_for
            if not isinstance(awaited, AwaitedDelegate):
                return isinstance(awaited, AwaitedApproval)
            try:
                run = await self.get(awaited.agent_type, awaited.instance_id, awaited.run_id)
            except RetainError as error:  # it is gone, or the token of a user does not reach it
                if error.status not in (403, 404):
                    raise
                return False
        return False

    def list(
        self,
        *,
        agent_type: str | None = None,
        instance_id: str | None = None,
        status: str | None = None,
        by: str | None = None,
        user_id: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> AsyncPages[ListedRun]:
        """Return the tenant's runs, newest first. text: words to search for. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[ListedRun], str | None]:
            response = await list_runs.asyncio_detailed(
                self._tenant,
                client=self._api,
                cursor=cursor,
                limit=or_unset(limit),
                agent_type=or_unset(agent_type),
                instance_id=or_unset(instance_id),
                status=or_unset(status),
                by=or_unset(by),
                user_id=or_unset(user_id),
                since_ms=or_unset(since_ms),
                until_ms=or_unset(until_ms),
                text=or_unset(text),
            )
            page = answered(response, RunsPage)
            return page.runs, page.cursor

        return AsyncPages(read)

    def costs(
        self,
        *,
        agent_type: str | None = None,
        purpose: ListCostsPurpose | None = None,
        since: date | None = None,
        until: date | None = None,
        limit: int | None = None,
    ) -> AsyncPages[DayCost]:
        """Return what was spent by day, agent, purpose and model, the last day first.

        A run counts on the day on which it ended, another call of a model on that on which it was answered.

        since, until: days in UTC; the second is not included. limit: of one page.
        """

        async def read(cursor: str | Unset) -> tuple[Sequence[DayCost], str | None]:
            response = await list_costs.asyncio_detailed(
                self._tenant,
                client=self._api,
                cursor=cursor,
                limit=or_unset(limit),
                agent_type=or_unset(agent_type),
                purpose=or_unset(purpose),
                since=or_unset(since),
                until=or_unset(until),
            )
            page = answered(response, Costs)
            return page.costs, page.cursor

        return AsyncPages(read)

    async def cancel(self, agent_type: str, instance_id: str, run_id: str, *, reason: str | None = None) -> Run:
        """Stop a run before its next side effect. Raises: RetainError."""
        response = await cancel_run.asyncio_detailed(
            self._tenant,
            agent_type,
            instance_id,
            run_id,
            client=self._api,
            body=CancelBody.from_dict(given(reason=reason)),
        )
        return _run(response)

    async def cancel_all(
        self,
        *,
        agent_type: str | None = None,
        instance_id: str | None = None,
        user: str | None = None,
        by: str | None = None,
        status: str | None = None,
        reason: str | None = None,
    ) -> Sequence[CancelledRun]:
        """Cancel the open runs that meet every condition, of which one is needed; return them, each with what prevented it.

        Raises: RetainError.
        """
        conditions = given(
            agent_type=agent_type, instance_id=instance_id, user_id=user, by=by, status=status, reason=reason
        )
        cancelled: list[CancelledRun] = []
        cursor: str | None = None
        while True:
            body = CancelRunsBody.from_dict({**conditions, **given(cursor=cursor)})
            page = answered(
                await cancel_runs.asyncio_detailed(self._tenant, client=self._api, body=body), CancelledRuns
            )
            cancelled += page.runs
            if page.cursor is None:
                return cancelled
            cursor = page.cursor

    async def retry(self, agent_type: str, instance_id: str, run_id: str, *, idempotency_key: str | None = None) -> Run:
        """Begin a run that continues a failed or cancelled one from the step that failed, and return it.

        idempotency_key: as for `start`. Raises: RetainError.
        """
        key = idempotency_key or uuid.uuid4().hex
        response = await retry_run.asyncio_detailed(
            self._tenant, agent_type, instance_id, run_id, client=self._api, idempotency_key=key
        )
        return _run(response)

    async def fork(
        self, agent_type: str, instance_id: str, run_id: str, turns: int, *, idempotency_key: str | None = None
    ) -> Run:
        """Begin a run that keeps the first turns of one that has ended, and return it. As `retry`."""
        key, body = idempotency_key or uuid.uuid4().hex, ForkBody(turns=turns)
        response = await fork_run.asyncio_detailed(
            self._tenant, agent_type, instance_id, run_id, client=self._api, body=body, idempotency_key=key
        )
        return _run(response)

    async def approve(
        self, agent_type: str, instance_id: str, run_id: str, call: str, *, reason: str | None = None
    ) -> Run:
        """Allow the call that a run asks about; `call` is its name in the question. Raises: RetainError."""
        return await self._answer(agent_type, instance_id, run_id, call, "approve", reason)

    async def reject(
        self, agent_type: str, instance_id: str, run_id: str, call: str, *, reason: str | None = None
    ) -> Run:
        """Refuse the call that a run asks about. As `approve`."""
        return await self._answer(agent_type, instance_id, run_id, call, "reject", reason)

    async def _answer(
        self, agent_type: str, instance_id: str, run_id: str, call: str, decision: str, reason: str | None
    ) -> Run:
        body = ResumeBody.from_dict(given(call=call, decision=decision, reason=reason))
        response = await resume_run.asyncio_detailed(
            self._tenant, agent_type, instance_id, run_id, client=self._api, body=body
        )
        return _run(response)


def _run(response: Response[Any]) -> Run:
    return response.parsed if isinstance(response.parsed, RunStanding) else answered(response, RunResult)


def _body(
    given_input: str | Mapping[str, Any],
    instance_id: str | None,
    user: str | Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    attachments: Sequence[str | Mapping[str, Any]],
    output_schema: Mapping[str, Any] | None,
    *,
    stream: bool,
    background: bool | None = None,
) -> RunBody:
    who = {"id": user} if isinstance(user, str) else user
    files = [{"id": one} if isinstance(one, str) else dict(one) for one in attachments]
    fields = given(
        input=given_input,
        instance_id=instance_id,
        user=who,
        metadata=metadata,
        attachments=files or None,
        output_schema=output_schema,
        stream=stream,
        background=background,
    )
    return body_of(RunBody, fields)
