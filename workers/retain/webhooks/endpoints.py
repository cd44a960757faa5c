"""The webhooks of a tenant: where its applications hear of runs.

A secret is shown when its webhook is created, and kept sealed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from retain.errors import NotFound, QuotaExceeded
from retain.identifiers import new_id
from retain.json_text import read_own_json
from retain.ports import Clock, Row, Sql
from retain.sealing.keyring import Keyring
from retain.webhooks.signing import new_secret

WebhookEvent = Literal["run.completed", "run.failed", "run.cancelled", "run.waiting"]
"""What a webhook hears of: the end of a run that no other run started, and a run that waits for a person."""
EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)
MAX_WEBHOOKS = 10
"""Most webhooks of a tenant."""
Guard = Callable[[str], Awaitable[None]]
"""Refuses an address to which nothing may be sent. Raises: InvalidInput (code `forbidden_upstream`,
`invalid_webhook_url`); Misconfigured (code `private_upstream`); Unavailable (code `resolver_unavailable`)."""

_CREATE = """
INSERT INTO webhooks (tenant_id, webhook_id, url, events, secret, created_by, created_at_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE (SELECT COUNT(*) FROM webhooks WHERE tenant_id = ?1) < ?8 RETURNING webhook_id
"""
_PAGE = "SELECT * FROM webhooks WHERE tenant_id = ? AND webhook_id > ? ORDER BY webhook_id LIMIT ?"
_ROTATE = """
UPDATE webhooks SET secret = ?3,
  previous_secret = CASE WHEN ?4 > ?5 THEN secret END, previous_until_ms = CASE WHEN ?4 > ?5 THEN ?4 END
WHERE tenant_id = ?1 AND webhook_id = ?2 RETURNING *
"""
_RESEAL = """
UPDATE webhooks SET secret = ?3, previous_secret = ?4, reseals = reseals + 1
WHERE tenant_id = ?1 AND webhook_id = ?2 AND secret IS ?5 AND previous_secret IS ?6
"""
_DELETE = "DELETE FROM webhooks WHERE tenant_id = ? AND webhook_id = ? RETURNING webhook_id"


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook, without its secret. created_at_ms: epoch milliseconds.

    previous_until_ms: until when its messages are signed with the secret before as well, None if they are not.
    """

    webhook_id: str
    url: str
    events: tuple[WebhookEvent, ...]
    created_by: str
    created_at_ms: int
    previous_until_ms: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the webhook as HTTP answers have it."""
        return {name: getattr(self, name) for name in self.__slots__} | {"events": list(self.events)}


@dataclass(frozen=True, slots=True)
class WebhookPage:
    """Webhooks, the oldest first, and the cursor of the next page: None on the last."""

    webhooks: Sequence[Webhook]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ResealedWebhooks:
    """What was sealed again. unreadable: how many webhooks have a secret that no key of the deployment opens."""

    resealed: int
    unreadable: int


def secret_name(webhook_id: str) -> str:
    """Return the name for which the secret of a webhook is sealed."""
    return f"webhook:{webhook_id}"


class Webhooks:
    """The webhooks of all tenants, in D1."""

    def __init__(self, sql: Sql, clock: Clock, keys: Callable[[], Keyring], guard: Guard) -> None:
        """keys: returns what seals the secrets."""
        self._sql = sql
        self._clock = clock
        self._keys = keys
        self._guard = guard

    async def create(self, tenant_id: str, url: str, events: Sequence[WebhookEvent], *, by: str) -> tuple[Webhook, str]:
        """Create a webhook; return it and its secret, which cannot be read again. by: who creates it.

        Raises: as `Guard`; QuotaExceeded (code `too_many_webhooks`); Misconfigured (code `credentials_key_missing`,
            `invalid_credentials_key`).
        """
        await self._guard(url)
        secret = new_secret()
        made = Webhook(new_id(), url, tuple(name for name in EVENTS if name in events), by, self._clock())
        sealed = await self._keys().seal(secret_name(made.webhook_id), secret)
        values = (tenant_id, made.webhook_id, url, json.dumps(made.events), sealed, by, made.created_at_ms)
        if not (await self._sql.run(_CREATE, *values, MAX_WEBHOOKS)).rows:
            raise QuotaExceeded(
                f"a tenant has at most {MAX_WEBHOOKS} webhooks", code="too_many_webhooks", limit=MAX_WEBHOOKS
            )
        return made, secret

    async def page(self, tenant_id: str, *, after: str | None, limit: int) -> WebhookPage:
        """Return the webhooks of a tenant that are newer than the one with the id `after`."""
        rows = (await self._sql.run(_PAGE, tenant_id, after or "", limit + 1)).rows
        webhooks = [_webhook(row) for row in rows[:limit]]
        return WebhookPage(webhooks, webhooks[-1].webhook_id if len(rows) > limit else None)

    async def rotate(self, tenant_id: str, webhook_id: str, grace_ms: int) -> tuple[Webhook, str]:
        """Give a webhook another secret; return both. The next message is signed with it.

        grace_ms: for how long it is signed with the secret before as well.
        Raises: NotFound (code `no_such_webhook`); Misconfigured (code `credentials_key_missing`, `invalid_credentials_key`).
        """
        secret = new_secret()
        sealed = await self._keys().seal(secret_name(webhook_id), secret)
        now_ms = self._clock()
        rows = (await self._sql.run(_ROTATE, tenant_id, webhook_id, sealed, now_ms + grace_ms, now_ms)).rows
        if not rows:
            raise _unknown()
        return _webhook(rows[0]), secret

    async def reseal(self, tenant_id: str) -> ResealedWebhooks:
        """Seal the secrets of a tenant's webhooks with the current key, if an older one sealed them. Idempotent.

        A secret that no key of the deployment opens stays as it is.
        Raises: Misconfigured (code `credentials_key_missing`, `invalid_credentials_key`).
        """
        keys = self._keys()
        resealed = unreadable = 0
        for row in (await self._sql.run(_PAGE, tenant_id, "", MAX_WEBHOOKS)).rows:
            name, before = secret_name(row["webhook_id"]), (row["secret"], row["previous_secret"])
            try:
                after = [
                    one if one is None or keys.is_current(one) else await keys.seal(name, await keys.open(name, one))
                    for one in before
                ]
            except ValueError:
                unreadable += 1
                continue
            if (*after,) != before:
                await self._sql.run(_RESEAL, tenant_id, row["webhook_id"], *after, *before)
                resealed += 1
        return ResealedWebhooks(resealed, unreadable)

    async def delete(self, tenant_id: str, webhook_id: str) -> None:
        """Delete a webhook: what it was not sent yet is not sent. Raises: NotFound (code `no_such_webhook`)."""
        if not (await self._sql.run(_DELETE, tenant_id, webhook_id)).rows:
            raise _unknown()


def _unknown() -> NotFound:
    return NotFound("the tenant has no such webhook", code="no_such_webhook")


def _webhook(row: Row) -> Webhook:
    events = tuple(read_own_json(row["events"]))
    until_ms = row["previous_until_ms"]
    names = (row["webhook_id"], row["url"], events, row["created_by"])
    return Webhook(*names, int(row["created_at_ms"]), None if until_ms is None else int(until_ms))
