"""Verification, erasure, history, backups, and the migration of keys."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from retain.items.rekeying.phases import Backfilled
from retain.lifecycle.backups.jobs import JobKind
from retain.lifecycle.backups.objects import Manifest
from retain.lifecycle.erasure.receipts import Kind


class DriftJson(TypedDict):
    """Records that differ from their events or indexes in one way, and up to 20 of their ids."""

    count: int
    ids: list[str]


class RepairJson(TypedDict):
    """What was repaired. settled: whether nothing is owed any more."""

    owed: int
    settled: bool


VerificationJson = TypedDict(  # noqa: UP013 -- one member has a name that this code does not use
    "VerificationJson",
    {"checked": int, "behind": int, "drift": dict[str, DriftJson], "repaired": RepairJson, "cursor": str | None},
)
"""What drifted on a page of records, and how many have an index that is still being written."""


class ReceiptJson(TypedDict):
    """The receipt of an erasure: what was erased is in it as a digest only."""

    receipt_id: str
    tenant_id: str
    kind: Kind
    state: Literal["running", "completed"]
    request_digest: str
    counts: dict[str, int]
    error: str | None
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None


class ReceiptsJson(TypedDict):
    """A page of receipts, the newest first."""

    receipts: list[ReceiptJson]
    cursor: str | None


class ErasureJson(TypedDict):
    """The state of an erasure. salt: with it the digest can be recomputed. retry_after_ms: until it is complete."""

    receipt: ReceiptJson
    salt: str | None
    retry_after_ms: int | None


class HistoryEntryJson(TypedDict):
    """An entry of the world history."""

    seq: int
    kind: str
    subject_id: str
    digest: str
    at_ms: int
    previous_hash: str
    hash: str


class HistoryJson(TypedDict):
    """A page of the world history, oldest first."""

    entries: list[HistoryEntryJson]
    cursor: str | None


class MutationJson(TypedDict):
    """An entry of the mutation log. thing, key: what it is about, while that exists."""

    number: int
    kind: str
    subject: int | None
    thing: str | None
    key: str | None
    version: int | None
    detail: str | None
    at_ms: int
    changed_by: str | None


class MutationsJson(TypedDict):
    """A page of the mutation log, oldest first."""

    entries: list[MutationJson]
    cursor: str | None


class BackupJobJson(TypedDict):
    """A backup or a restore under way. request: what was asked for."""

    job_id: str
    tenant_id: str
    kind: JobKind
    state: str
    request: dict[str, object]
    pages: int
    counts: dict[str, int]
    error: str | None
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None


class BackupsJson(TypedDict):
    """A page of complete backups, oldest first."""

    backups: list[Manifest]
    cursor: str | None


class TierCountsJson(TypedDict):
    """Reads and repairs of one tier in a cycle."""

    canonical: int
    legacy: int
    absent: int
    unread: int
    repaired: int
    repair_failed: int
    hit_rate: float | None


class CycleJson(TypedDict):
    """A cycle of the migration, from a release to the next one or to a change of phase."""

    cycle: int
    phase: int
    opened_by: str
    opened_at_ms: int
    closed_at_ms: int | None
    verdict: str | None
    tiers: dict[str, TierCountsJson]


class MigrationFlagsJson(TypedDict):
    """The settings of the migration. fit: whether they are those of the phase."""

    write_canonical: bool
    compat_read: bool
    fit: bool


class KeyMigrationJson(TypedDict):
    """The state of the migration of keys, and what to do about it."""

    phase: int
    since_ms: int
    baseline: float
    flags: MigrationFlagsJson
    patterns: list[dict[str, str]]
    copies_from_ms: int | None
    below_baseline: list[str]
    roll_back: bool
    obstacles: list[str]
    cycles: list[CycleJson]
    backfill: list[Backfilled]
