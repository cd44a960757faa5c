"""What the interface's routes work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retain.errors import NotFound
from retain.http import Request
from retain.ingest.ingestion import Ingestion
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.models.chat import ChatModel
from retain.ports import Background, Clock, Sql
from retain.tenants.register import Tenants

_ACCOUNTS = "accounts"


@dataclass(frozen=True, slots=True)
class AgentMemoryContext:
    """What the routes work with.

    account: the one account id that is answered; "" for any, None for none: then nothing of this is served. semantic,
    ingestion: return the memory and the ingest of a scope. stores: of every tenant, for erasures. chat: returns the
    language model that writes answers and summaries, None where none is configured.
    """

    account: str | None
    tenants: Tenants
    sql: Sql
    semantic: Callable[[Scope], SemanticMemory]
    ingestion: Callable[[Scope], Ingestion]
    stores: Stores
    clock: Clock
    background: Background
    chat: Callable[[str], ChatModel] | None = None

    async def admit(self, request: Request) -> AgentMemoryContext:
        """Return this for a request to the account. Raises: NotFound (code `no_such_route`) for another one."""
        parts = request.path.split("/")
        named = parts[parts.index(_ACCOUNTS) + 1] if _ACCOUNTS in parts[:-1] else ""
        if self.account is None or self.account not in ("", named):
            raise NotFound("there is no such route", code="no_such_route")
        return self
