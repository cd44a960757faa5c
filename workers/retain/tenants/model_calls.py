"""Counts what models are asked outside of runs, for the tenant that it is done for."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from retain.errors import RetainError
from retain.ports import Clock, Sql
from retain.retention import DAY_MS
from retain.tenants.model_use import CallPurpose
from retain.tenants.quotas import quotas_of

_COUNT = """
INSERT INTO spent_calls (tenant_id, day, agent_type, purpose, model, input_tokens, cached_input_tokens, output_tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallPayer:
    """Who pays for a call of a model, and for what. agent_type: "" if it belongs to no agent."""

    tenant_id: str
    purpose: CallPurpose
    agent_type: str = ""


class CallCounts:
    """Counts the calls of one payer."""

    def __init__(self, sql: Sql, clock: Clock, payer: CallPayer) -> None:
        self._sql = sql
        self._clock = clock
        self._payer = payer

    async def check(self) -> None:
        """Check that the tenant may spend tokens today. Raises: QuotaExceeded (code `token_quota`); Unavailable."""
        (await quotas_of(self._sql, self._payer.tenant_id, self._clock())).check_tokens()

    async def add(self, model: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> None:
        """Count one call, on this day. Raises nothing.

        A database that does not answer may have counted, so the count is not repeated: the log has what it was.
        """
        payer, day = self._payer, self._clock() // DAY_MS
        tokens = (input_tokens, cached_input_tokens, output_tokens)
        try:
            await self._sql.run(_COUNT, payer.tenant_id, day, payer.agent_type, payer.purpose, model, *tokens)
        except RetainError as error:
            extra = {"tenant_id": payer.tenant_id, "purpose": payer.purpose, "model": model, "code": error.code}
            _log.exception("a call of a model was perhaps not counted", extra={**extra, "tokens": tokens})
