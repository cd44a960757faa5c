"""Following a run: what happened after a position in its log, and what the model is writing now."""

from __future__ import annotations

from retain.agents.calls.answers import News, RunStreamEvent
from retain.agents.calls.report import RunMemory
from retain.agents.calls.requests import FollowRequest, ReadPosition
from retain.agents.execution.live_text import LiveText, Piece
from retain.agents.execution.stream import shown
from retain.agents.identity import InstanceIdentity
from retain.agents.runs.events import ModelAnswered
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun

STARTED_ID = 0
"""The id of `run.started`, which comes before the log's events."""


class Following:
    """Reads the runs of one instance for those who follow them."""

    def __init__(self, identity: InstanceIdentity, journal: Journal, live: LiveText) -> None:
        self._identity = identity
        self._journal = journal
        self._live = live

    async def follow(self, request: FollowRequest) -> News:
        """Return what happened; when there is nothing yet, wait for it up to `wait_s`.

        Reads only. Raises: NotFound (code `no_such_run`).
        """
        run_id, position = request.run_id, request.position

        def has_news() -> bool:
            if self._live.after(run_id, position) is not None:
                return True
            return self._journal.last_seq(run_id) > max(position.after, STARTED_ID)

        if position.after >= STARTED_ID and not self._journal.report(run_id).ended:
            await self._live.news(has_news, request.wait_s)
        return self._read(run_id, position)

    def _read(self, run_id: str, position: ReadPosition) -> News:
        report = self._journal.report(run_id)
        piece = self._live.after(run_id, position)
        after, turn, offset = position.after, position.turn, position.offset
        events: list[RunStreamEvent] = []
        if after < STARTED_ID:
            first = self._journal.runs.first(run_id)
            if first.messages:  # otherwise the run ended in the queue
                events.append(self._started(first))
        for logged in self._journal.events(run_id, after=max(after, STARTED_ID)):
            after = logged.seq
            if piece is not None and isinstance(logged.event, ModelAnswered) and logged.event.turn == piece.turn:
                events.append(_delta(piece))
                turn, offset, piece = piece.turn, piece.end, None
            events += shown(logged.seq, logged.event, report)
        if piece is not None:
            events.append(_delta(piece))
            turn, offset = piece.turn, piece.end
        return News(tuple(events), ReadPosition(max(after, STARTED_ID), turn, offset), report.status)

    def _started(self, run: OpenRun) -> RunStreamEvent:
        return RunStreamEvent(
            "run.started",
            {
                "run_id": run.run_id,
                "instance_id": self._identity.instance_id,
                "agent_type": self._identity.agent_type,
                "memory": RunMemory(run.episodes_used, run.records_used, run.messages_used).to_json(),
            },
            STARTED_ID,
        )


def _delta(piece: Piece) -> RunStreamEvent:
    return RunStreamEvent("text.delta", {"turn": piece.turn, "offset": piece.offset, "text": piece.text})
