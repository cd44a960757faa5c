"""How far a worker is with the ingest of a request, as it knows without asking D1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retain.ingest.inbox import Received, Waiting
from retain.ingest.jobs import IngestJob, Stage

SLICE = 100
"""Messages that are stored together, in one call of the embedder and one transaction."""


class IngestProgress:
    """How far a job is. waiting: its next messages, None when they have to be read. ended: the job once all is done.

    whole: whether what waits is all of a new job.
    """

    def __init__(self, job: IngestJob, waiting: Waiting | None, *, whole: bool) -> None:
        self.job = job
        self.waiting = waiting
        self.stage: Stage = "storing"
        self.ended: IngestJob | None = None
        self._whole = whole
        self._counts = (0, 0)

    def ends_with(self, messages: Sequence[Received]) -> bool:
        """Return whether the job is done once these messages, the first that wait, are stored with their facts."""
        return self._whole and self.waiting is not None and len(messages) == len(self.waiting.received)

    def stored(self, messages: Sequence[Received], facts: int | None) -> None:
        """Note that the first of the waiting messages are stored, with so many facts; None if these are not extracted."""
        self._counts = self._counts[0] + len(messages), self._counts[1] + (facts or 0)
        was, self.waiting = self.waiting, None
        if was is None:
            return
        rest = was.received[len(messages) :]
        all_read = len(was.received) < SLICE and not was.unread and not was.unlearned
        if rest or (facts is not None and all_read):
            self.waiting = Waiting(rest)

    def look_again(self) -> None:
        """Let what waits be read again: the messages that were known are no longer all there."""
        self.waiting, self._whole = None, False

    def complete(self, now_ms: int) -> None:
        """Note that all of a new job is done."""
        stored, extracted = self._counts
        self.ended = replace(
            self.job,
            state="completed",
            stored=stored,
            extracted=extracted,
            lease_until_ms=0,
            updated_at_ms=now_ms,
            completed_at_ms=now_ms,
        )
