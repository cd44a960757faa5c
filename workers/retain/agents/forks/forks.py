"""Forks of runs: a new run of the same instance, with what another one read and with its first turns.

A retry is the fork of a run that failed or was cancelled, with everything that it had achieved. Each has limits and a
deadline of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from retain.agents.calls.requests import ForkRequest
from retain.agents.calls.run_request import Budget, Fork, RunRequest
from retain.agents.files.past_files import only_accepted
from retain.agents.forks.carried import carried, pending_key, whole_turns
from retain.agents.runs.events import RunCompleted, RunForked
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import Basis, OpenRun, VersionReference
from retain.agents.runs.run_state import fold
from retain.errors import Conflict, InvalidInput
from retain.models.attached import FileKind


class Forks:
    """What the runs of one instance may begin with."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def request(self, asked: ForkRequest) -> RunRequest:
        """Return the request for a fork of a run that has ended, or for its retry.

        Raises: NotFound (code `no_such_run`); Conflict (code `run_not_ended`, `delegated_run`, and `run_not_failed` for a
            retry); InvalidInput (code `invalid_turn`).
        """
        repeated = self._repeated(asked)
        if repeated is not None:
            return repeated
        source = self._journal.load(asked.run_id)
        if source.state.closed is None:
            raise Conflict("the run has not ended", code="run_not_ended")
        if source.request.parent is not None:
            raise Conflict("another run delegated to this one: fork that one", code="delegated_run")
        if asked.turns is None and isinstance(source.state.closed, RunCompleted):
            raise Conflict("the run did not fail: fork it from a turn", code="run_not_failed")
        whole = whole_turns(source.state)
        if asked.turns is not None and asked.turns > whole:
            raise InvalidInput(f"the run can be forked after {whole} turns at most", code="invalid_turn", limit=whole)
        return replace(
            source.request,
            idempotency_key=asked.idempotency_key,
            by=asked.by,
            budget=Budget(),
            # A run that never began has read nothing, and is asked for again.
            fork=Fork(asked.run_id, asked.turns) if source.messages else None,
        )

    def _repeated(self, asked: ForkRequest) -> RunRequest | None:
        """Return the request with which this fork has begun, None if it has not: its source may be forgotten before it."""
        known = None if asked.idempotency_key is None else self._journal.runs.asked_with(asked.idempotency_key)
        if known is None:
            return None
        request = self._journal.runs.first(known.run_id).request
        return request if request.fork == Fork(asked.run_id, asked.turns) else None

    def beginning(
        self,
        request: RunRequest,
        run_id: str,
        basis_now: Callable[[Basis | None], Basis],
        agent: VersionReference | None,
        accepts: Collection[FileKind],
    ) -> Callable[[], OpenRun]:
        """Return what records the fork that a request asks for.

        basis_now: returns what its decisions rest on, from what those of the run before it did. agent: the version with
        which it begins. accepts: the files that it takes; others that the run before it read are named.
        Raises: NotFound (code `no_such_run`).
        """
        fork = request.fork
        if fork is None:
            raise ValueError("the request asks for no fork")
        source, kept = self._journal.load(fork.run_id), carried(self._journal.events(fork.run_id), fork.turns)
        state = fold(logged.event for logged in kept)
        key = pending_key(fork.run_id, kept, source.state)
        forked = RunForked(len(state.turns), fork.run_id, whole_turns(state), key)
        first = self._journal.runs.first(fork.run_id)
        messages = tuple(only_accepted(message, accepts) for message in first.messages)
        run = replace(
            first, run_id=run_id, request=request, messages=messages, basis=basis_now(first.basis), agent=agent
        )
        return partial(self._journal.fork, run, kept, forked)
