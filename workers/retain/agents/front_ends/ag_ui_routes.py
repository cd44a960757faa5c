"""AG-UI over HTTP: a route that its clients are pointed at, and its encoding of the existing streams for whoever accepts it.

Source: https://docs.ag-ui.com/spec/1.0/basic/transports/http-sse
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from retain.agents.attachments.resolving import with_files
from retain.agents.calls.asked import FILE_REFUSALS, REFUSALS, principal_of
from retain.agents.calls.asked_files import MAX_BODY_BYTES
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import BEGINNING
from retain.agents.calls.run_request import RunReference
from retain.agents.context import AgentsContext
from retain.agents.execution.event_stream import followed, last_event_id, nothing_follows, streamed
from retain.agents.execution.stream import KEEP_ALIVE, RETRY_MS
from retain.agents.front_ends.ag_ui_events import AgUiEncoding, AgUiRun, AnsweredQuestion
from retain.agents.front_ends.ag_ui_input import AgUiInput
from retain.agents.front_ends.question import Question, question_of
from retain.errors import Forbidden, NotFound, Unavailable
from retain.http import Request, Response
from retain.identifiers import check_instance_id
from retain.routing.bodies import JsonBody
from retain.routing.requests import TypedRequest
from retain.routing.route import Answer, Resource, Route

MEDIA_TYPE = "text/event-stream; charset=utf-8; profile=ag-ui"
"""The type of a stream of AG-UI's events; whoever sends `profile=ag-ui` in `accept` gets it."""


async def run_ag_ui(context: AgentsContext, request: TypedRequest[AgUiInput, None]) -> Response:
    """Run an agent for a client of AG-UI, or answer what a run asks, and stream what happens as AG-UI's events."""
    http, body, agent_type = request.http, request.body, request.path["agent_type"]
    after = last_event_id(http.headers)
    answer = body.answer(principal_of(http))
    if answer is None:
        wanted = body.asked()
        instance_id, asked = wanted.checked(http)
        asked = await with_files(context, http, (request.tenant_id, agent_type, instance_id), asked, wanted)
        instance = await context.instance(request.tenant_id, agent_type, instance_id)
        run_id, answered = (await instance.start(asked)).run_id, None
    else:
        if http.bound is not None:
            raise Forbidden("a user's token answers no approval: the application does", code="token_not_allowed")
        instance = await context.instance(request.tenant_id, agent_type, check_instance_id(body.thread_id))
        asker = instance
        if answer.delegate is not None:
            await instance.show(answer.run_id)  # the run of the thread, which the stream continues
            asker = await context.instance(request.tenant_id, *answer.delegate)
        await asker.answer(answer.request)
        run_id, answered = answer.run_id, answer.answered
    if after != BEGINNING and await nothing_follows(instance, run_id, after):
        return Response(204, "")
    return ag_ui_stream(instance, run_id, body.run, after, answered)


def wants_ag_ui(http: Request) -> bool:
    """Return whether a request accepts an event stream of AG-UI's events."""
    for kind in http.headers.get("accept", "").lower().split(","):
        media_type, *parameters = (part.strip() for part in kind.split(";"))
        if media_type == "text/event-stream" and {"profile=ag-ui", 'profile="ag-ui"'} & set(parameters):
            return True
    return False


def ag_ui_run_stream(instance: InstanceClient, run_id: str, after: int) -> Response:
    """Return the response that streams a run of Retain's interface as AG-UI's events, under its own names."""
    return ag_ui_stream(instance, run_id, AgUiRun(instance.identity.instance_id, run_id), after)


def ag_ui_stream(
    instance: InstanceClient, run_id: str, named: AgUiRun, after: int, answered: AnsweredQuestion | None = None
) -> Response:
    """Return the response that streams a run as AG-UI's events. named, after, answered: as in `AgUiEncoding`."""
    identity = instance.identity
    reference = RunReference(run_id, identity.agent_type, identity.instance_id)
    return streamed(
        _pieces(instance, run_id, AgUiEncoding(named, reference, after=after, answered=answered)), MEDIA_TYPE
    )


async def _pieces(instance: InstanceClient, run_id: str, encoding: AgUiEncoding) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    for event in encoding.beginning():
        yield event.text()
    end = ("run_continues", "nothing has happened for a while, and the run continues: follow it with the same runId")
    try:
        async for news in followed(instance, run_id):
            if news is None:
                yield KEEP_ALIVE
            else:
                for event in encoding.encode(news):
                    yield event.text()
            question = await _asked_below(instance, run_id) if encoding.awaits_delegate else None
            if question is not None:
                for event in encoding.asked_below(question):
                    yield event.text()
            if encoding.ended:
                return
    except (NotFound, Unavailable) as error:  # not found once it was removed, with its conversation or by an erasure
        end = (error.code, error.message)
    for event in encoding.broken_off(*end):
        yield event.text()


async def _asked_below(instance: InstanceClient, run_id: str) -> Question | None:
    """Return what a delegate for which the run waits asks a person, None when none does. Raises: Unavailable."""
    question = await question_of(instance, await instance.show(run_id))
    return question if question is not None and question.delegated else None


AG_UI: Resource[AgentsContext] = Resource(
    "AG-UI",
    (
        Route(
            "POST",
            "/v1/agents/{tenant}/{agent_type}/ag-ui",
            run_ag_ui,
            name="run_ag_ui",
            needs="operator",
            scope="runs",
            for_users=True,
            body=JsonBody(AgUiInput),
            takes="`RunAgentInput` of [AG-UI](front-ends.md#ag-ui)",
            headers={"last-event-id": "the event after which to continue, with the same `runId`"},
            answers=(
                Answer(200, "[AG-UI's events](front-ends.md#ag-ui)", media_types=("text/event-stream",)),
                Answer(204, "the run has ended and all of its events were read"),
            ),
            errors=(
                *REFUSALS,
                *FILE_REFUSALS,
                "invalid_agent_type",
                "invalid_id",
                "no_user_message",
                "unsupported_content",
                "invalid_last_event_id",
                "unknown_time_zone",
                "no_such_run",
                "no_such_instance",
                "not_waiting",
                "already_answered",
                "run_cancelled",
            ),
            max_body_bytes=MAX_BODY_BYTES,
        ),
    ),
    about="For front ends that speak AG-UI, the Agent User Interaction Protocol.",
)
