"""Following a run: what happened behind a place in its log, and what the model writes right now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from retain.agents.execution.live_text import LiveText, Piece
from retain.agents.runs.events import ModelAnswered, from_json
from retain.agents.runs.journal import Journal
from retain.agents.runs.stream import RunStreamEvent, shown

STARTED_ID = 0
"""The id of `run.started`, which stands before the log."""


class Following:
    """Reads the runs of one instance for those who follow them."""

    def __init__(self, journal: Journal, live: LiveText) -> None:
        self._journal = journal
        self._live = live

    async def follow(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what happened, waiting up to `wait_s` for something when there is nothing yet.

        request: {"run_id", "after": the id that was read last, -1 for none, "turn", "offset": how much was read of the
        answer that is being written, "wait_s"}. Answers {"events", "after", "turn", "offset", "status"}: the place to go
        on from. Reads only. Raises: NotFound (code `no_such_run`).
        """
        run_id, after = str(request["run_id"]), int(request["after"])
        turn, offset = int(request["turn"]), int(request["offset"])
        self._journal.load(run_id)

        def there_is() -> bool:
            return self._piece(run_id, after, turn, offset) is not None or bool(
                self._journal.events(run_id, after=max(after, 0))
            )

        standing = self._journal.standing(run_id)
        if after >= 0 and "status" in standing and standing["status"] in ("running", "waiting"):
            await self._live.news(there_is, float(request["wait_s"]))
        return self._read(run_id, after, turn, offset)

    def _read(self, run_id: str, after: int, turn: int, offset: int) -> dict[str, Any]:
        run = self._journal.load(run_id)
        standing = self._journal.standing(run_id)
        piece = self._piece(run_id, after, turn, offset)
        events: list[RunStreamEvent] = []
        if after < STARTED_ID:
            started = {
                "run_id": run_id,
                "instance_id": standing["instance_id"],
                "agent_type": run.request["agent_type"],
                "memory": {"episodes_used": run.episodes_used, "records_used": run.records_used},
            }
            events.append(RunStreamEvent("run.started", started, STARTED_ID))
        for row in self._journal.events(run_id, after=max(after, 0)):
            event, after = from_json(row["kind"], json.loads(row["data"])), int(row["seq"])
            if piece is not None and isinstance(event, ModelAnswered) and event.turn == piece.turn:
                events.append(_delta(piece))
                turn, offset, piece = piece.turn, piece.offset + len(piece.text), None
            events += shown(after, event, standing)
        if piece is not None:
            events.append(_delta(piece))
            turn, offset = piece.turn, piece.offset + len(piece.text)
        return {
            "events": [event.to_json() for event in events],
            "after": max(after, STARTED_ID),
            "turn": turn,
            "offset": offset,
            "status": standing["status"],
        }

    def _piece(self, run_id: str, after: int, turn: int, offset: int) -> Piece | None:
        """Return what is being written, unless the reader has read the whole answer in the log."""
        piece = self._live.after(run_id, turn, offset)
        if piece is None:
            return None
        whole = [
            row
            for row in self._journal.events(run_id)
            if row["kind"] == "model_answered" and row["turn"] == piece.turn and row["seq"] <= after
        ]
        return None if whole else piece


def _delta(piece: Piece) -> RunStreamEvent:
    return RunStreamEvent("text.delta", {"turn": piece.turn, "offset": piece.offset, "text": piece.text})
