"""Tenants, roles, keys of applications, and users."""

from __future__ import annotations

from typing_extensions import TypedDict

from retain.application_keys.scope import KeyScope
from retain.lifecycle.moving.moves import MoveState, Step
from retain.roles.grants import RoleGrant
from retain.roles.role import Role
from retain.webhooks.delivery_log import DeliveryStatus
from retain.webhooks.endpoints import WebhookEvent


class TenantJson(TypedDict):
    """A tenant, and how many memories each of its users may have; null without a limit."""

    tenant: str
    max_memories_per_user: int | None


class ListedTenantJson(TenantJson):
    """A tenant, and when it was registered."""

    created_at_ms: int


class TenantsJson(TypedDict):
    """A page of tenants, by their ids."""

    tenants: list[ListedTenantJson]
    cursor: str | None


class QuotaNumbersJson(TypedDict):
    """The numbers of quotas; null where there is no limit."""

    memories: int | None
    runs_a_day: int | None
    tokens_a_day: int | None


class OwnAccessJson(TypedDict):
    """What the caller may do. role: for the tenant. everywhere: for every tenant; null without one."""

    name: str
    role: Role | None
    everywhere: Role | None
    operations: list[str]


class RolesJson(TypedDict):
    """A page of roles."""

    roles: list[RoleGrant]
    cursor: str | None


class KeyJson(TypedDict):
    """What is known of a key, without its text. last_used_at_ms: to the minute."""

    key_id: str
    name: str
    scopes: list[KeyScope]
    origins: list[str]
    created_by: str
    created_at_ms: int
    expires_at_ms: int | None
    revoked_at_ms: int | None
    last_used_at_ms: int | None


class KeysJson(TypedDict):
    """A page of keys, the newest first."""

    keys: list[KeyJson]
    cursor: str | None


class CreatedKeyJson(KeyJson):
    """A new key. key: its text, which is shown once."""

    key: str


class RotatedKeyJson(CreatedKeyJson):
    """A new key. replaces: the old one, which stays valid for a while."""

    replaces: KeyJson


class TokenJson(TypedDict):
    """A token of an application's user."""

    token: str
    expires_at_ms: int


class WebhookJson(TypedDict):
    """A webhook, without its secret. previous_until_ms: until when the secret before its last rotation signs as well."""

    webhook_id: str
    url: str
    events: list[WebhookEvent]
    created_by: str
    created_at_ms: int
    previous_until_ms: int | None


class WebhooksJson(TypedDict):
    """A page of webhooks, the oldest first."""

    webhooks: list[WebhookJson]
    cursor: str | None


class CreatedWebhookJson(WebhookJson):
    """A new webhook. secret: of its signatures, which is shown once."""

    secret: str


class DeliveryJson(TypedDict):
    """A message to a webhook. response_status: of the last attempt. error: its code, without an answer. due_at_ms: of the
    next attempt, while the message is pending."""

    message_id: str
    event: WebhookEvent
    run_id: str
    agent_type: str
    instance_id: str
    at_ms: int
    status: DeliveryStatus
    attempts: int
    response_status: int | None
    error: str | None
    last_at_ms: int | None
    due_at_ms: int | None


class DeliveriesJson(TypedDict):
    """A page of messages, those of the newest runs first."""

    deliveries: list[DeliveryJson]
    cursor: str | None


class UserJson(TypedDict):
    """What is known of a user; null where it is not."""

    id: str
    name: str | None
    locale: str | None
    timezone: str | None
    created_at_ms: int | None
    last_run_at_ms: int | None


class UsersJson(TypedDict):
    """A page of users, by their ids."""

    users: list[UserJson]
    cursor: str | None


class UserCountsJson(TypedDict):
    """How much is kept of a user."""

    memories: int
    conversations: int
    runs: int
    items: int


class ShownUserJson(UserJson):
    """A user, and how much is kept of them."""

    counts: UserCountsJson


class ShardJson(TypedDict):
    """What is on a database. moving: tenants that come or go. used: the part of what a database may hold."""

    shard: str
    tenants: int
    moving: int
    bytes: int | None
    used: float | None


class ShardsJson(TypedDict):
    """The databases."""

    shards: list[ShardJson]


class MoveJson(TypedDict):
    """A move of a tenant. counts: rows and vectors copied, freezes, and for how many milliseconds it was not written."""

    tenant: str
    move_id: str
    source: str
    target: str
    state: MoveState
    step: Step
    counts: dict[str, int]
    error: str | None
    started_by: str
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None


class MovesJson(TypedDict):
    """A page of moves, the newest first."""

    moves: list[MoveJson]
    cursor: str | None


class TenantShardJson(TypedDict):
    """On which database a tenant lives. move: its open one."""

    tenant: str
    shard: str
    move: MoveJson | None
