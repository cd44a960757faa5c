"""The export of a run's spans when it has ended, next to what the ledgers are owed."""

from __future__ import annotations

from collections.abc import Sequence

from retain.agents.execution.ledger_notes import LedgerNotes
from retain.agents.execution.run_spans import run_spans
from retain.agents.identity import InstanceIdentity
from retain.agents.runs.events import RunCancelled, RunCompleted, RunEvent, RunFailed
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.run_log import RunLog
from retain.outbox import OwedStatement
from retain.telemetry.exporter import SpanExporter
from retain.telemetry.spans import Span


class RunTraces:
    """Notes of one instance's runs, and their spans. exporter: None where telemetry is not configured."""

    def __init__(
        self, identity: InstanceIdentity, notes: LedgerNotes, log: RunLog, exporter: SpanExporter | None
    ) -> None:
        self._identity = identity
        self._notes = notes
        self._log = log
        self._exporter = exporter

    def of(self, run: OpenRun, event: RunEvent, at_ms: int) -> Sequence[OwedStatement]:
        """Return what the ledgers are owed for an event; for the last one, export the run's spans after the answer."""
        if self._exporter is not None and isinstance(event, RunCompleted | RunFailed | RunCancelled):
            self._exporter.later(self._spans(run, self._exporter))
        return self._notes.of(run, event, at_ms)

    async def _spans(self, run: OpenRun, exporter: SpanExporter) -> list[Span]:
        log = self._log.events(run.run_id)
        return run_spans(self._identity, run, log, contents=exporter.collector.contents)
