"""Placement: which data belongs in which tier, for how long. The tier selection matrix, as data.

A deployment adds to it and changes it by the setting MEMORY_PLACEMENTS, a JSON object of the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast, get_args

from retain.errors import InvalidInput, Misconfigured
from retain.items.entry import Tier
from retain.json_text import read_json

MINUTE_S = 60
DAY_S = 86_400
YEAR_S = 31_557_600
"""A year of 365.25 days."""
MAX_TTL_S = 315_360_000
"""Longest lifetime that a put may ask for, in seconds: ten years. More is a time in another unit."""
MIN_TTL_S = 60
"""Source: https://developers.cloudflare.com/kv/api/write-key-value-pairs/#expiring-keys"""

Access = Literal["per_request", "many_per_session", "few_per_session", "rare"]
"""How often data of one type is expected to be read. `few_per_session`: once or twice."""
TIER_LATENCY_MS: Mapping[Tier, int] = {"hot": 50, "warm": 500, "cold": 2000}
"""How soon each tier is expected to answer a read: the shortest latency that data in it may demand."""

_TIERS = ("hot", "warm", "cold")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9-]{0,30}/")
_TAKEN = ("briefs/", "tenants/")
"""Prefixes that the cold tier's bucket uses for other data."""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class ItemPlacement:
    """Where data of one type belongs. Durations are in seconds; None means unlimited.

    ttl_s: from the write until reads no longer find it. retention_s: from the last use (in `cold`: from the write) until
    the daily work removes it. prefix: of its objects in the cold tier. infrequent_after_s: age at which its objects move
    to the cheaper storage class. access: how often it is expected to be read. latency_ms: how soon each read has to be
    answered.
    """

    tier: Tier
    ttl_s: int | None = None
    retention_s: int | None = None
    prefix: str = ""
    infrequent_after_s: int | None = None
    access: Access | None = None
    latency_ms: int | None = None

    @property
    def may_be_cold(self) -> bool:
        """Return whether the cold tier may hold its items: it has a prefix for them and answers soon enough."""
        return bool(self.prefix) and self._answered_by("cold")

    def __post_init__(self) -> None:
        if self.tier not in _TIERS:
            raise _refused(f"a tier is one of {', '.join(_TIERS)}")
        for name in ("ttl_s", "retention_s", "infrequent_after_s"):
            seconds = getattr(self, name)
            if seconds is not None and not (_is_whole(seconds) and seconds >= MIN_TTL_S):
                raise _refused(f"{name} is a number of seconds, at least {MIN_TTL_S}")
        if self.tier == "hot" and self.ttl_s is None:
            raise _refused("a hot placement needs ttl_s: hot values expire")
        if self.prefix and (_PREFIX.fullmatch(self.prefix) is None or self.prefix in _TAKEN):
            raise _refused(f"a prefix matches {_PREFIX.pattern} and is not one of {', '.join(_TAKEN)}")
        if self.tier == "cold" and not self.prefix:
            raise _refused("a cold placement needs a prefix: the bucket's life cycle rules select by it")
        if self.access is not None and self.access not in get_args(Access):
            raise _refused(f"access is one of {', '.join(get_args(Access))}")
        if self.latency_ms is not None and not (_is_whole(self.latency_ms) and self._answered_by(self.tier)):
            raise _refused(
                f"latency_ms is a number of milliseconds, at least {TIER_LATENCY_MS[self.tier]} in this tier"
            )

    def _answered_by(self, tier: Tier) -> bool:
        return self.latency_ms is None or self.latency_ms >= TIER_LATENCY_MS[tier]


Matrix = Mapping[str, ItemPlacement]
"""Data type, the fourth segment of the items' keys, to its placement."""

MATRIX: Matrix = {
    "session_state": ItemPlacement("hot", ttl_s=15 * MINUTE_S, access="per_request", latency_ms=50),
    "cart": ItemPlacement("hot", ttl_s=DAY_S, access="many_per_session", latency_ms=100),
    "search_queries": ItemPlacement("hot", ttl_s=5 * MINUTE_S, access="many_per_session", latency_ms=100),
    "preferences": ItemPlacement(
        "warm", retention_s=90 * DAY_S, prefix="preferences/", access="few_per_session", latency_ms=500
    ),
    "conversation": ItemPlacement(
        "warm", ttl_s=30 * DAY_S, prefix="conversations/", access="few_per_session", latency_ms=500
    ),
    "order_history": ItemPlacement(
        "cold",
        retention_s=7 * YEAR_S,
        prefix="orders-archive/",
        infrequent_after_s=365 * DAY_S,
        access="rare",
        latency_ms=2000,
    ),
    "product_images": ItemPlacement(
        "cold", prefix="uploads/", infrequent_after_s=30 * DAY_S, access="rare", latency_ms=5000
    ),
    "system_logs": ItemPlacement("cold", retention_s=90 * DAY_S, prefix="logs/", access="rare", latency_ms=10_000),
}
"""The default matrix."""


def placement_of(matrix: Matrix, data_type: str) -> ItemPlacement:
    """Return the placement of a data type. Raises: InvalidInput (code `unknown_data_type`)."""
    if data_type not in matrix:
        raise InvalidInput(
            "there is no placement for this data type: MEMORY_PLACEMENTS can add one",
            code="unknown_data_type",
            known=sorted(matrix),
        )
    return matrix[data_type]


def read_placements(text: str) -> Matrix:
    """Return the matrix with a setting's changes and additions: a JSON object, data type to fields of its placement.

    A known data type keeps the fields that are not named. Raises: Misconfigured (code `invalid_placement`).
    """
    if not text:
        return MATRIX
    try:
        given = read_json(text)
    except ValueError as error:
        raise _refused("MEMORY_PLACEMENTS is not JSON") from error
    if not isinstance(given, dict):
        raise _refused("MEMORY_PLACEMENTS is a JSON object")
    return checked_matrix({**MATRIX, **{data_type: _placement(data_type, entry) for data_type, entry in given.items()}})


def checked_matrix(matrix: Matrix) -> Matrix:
    """Return the matrix unchanged. Raises: Misconfigured (code `invalid_placement`) when two data types share a prefix."""
    prefixes = [placement.prefix for placement in matrix.values() if placement.prefix]
    if len(set(prefixes)) < len(prefixes):
        raise _refused("two data types share a prefix: the life cycle rules of one would apply to the other")
    return matrix


def lifecycle_rules(matrix: Matrix) -> dict[str, Any]:
    """Return the life cycle of the cold tier's bucket, as `wrangler r2 bucket lifecycle set --file` takes it.

    That command replaces all rules, so the bucket's default rule, which aborts abandoned uploads, is among them. Objects
    are removed by age only if the type belongs in the cold tier: the age of a demoted item is not that of its object, so
    the daily work removes it.
    Source: https://developers.cloudflare.com/r2/buckets/object-lifecycles/
    """
    rules = []
    for data_type, placement in sorted(matrix.items()):
        rule: dict[str, Any] = {
            "id": f"retain-{data_type}",
            "enabled": True,
            "conditions": {"prefix": placement.prefix},
        }
        if placement.tier == "cold" and placement.retention_s is not None:
            rule["deleteObjectsTransition"] = {"condition": _age(placement.retention_s)}
        if placement.infrequent_after_s is not None:
            condition = _age(placement.infrequent_after_s)
            rule["storageClassTransitions"] = [{"condition": condition, "storageClass": "InfrequentAccess"}]
        if placement.prefix and len(rule) > 3:
            rules.append(rule)
    abandoned = {
        "id": "retain-abandoned-uploads",
        "enabled": True,
        "conditions": {},
        "abortMultipartUploadsTransition": {"condition": _age(7 * DAY_S)},
    }
    return {"rules": [*rules, abandoned]}


def _age(seconds: int) -> dict[str, Any]:
    days = -(-seconds // DAY_S)  # rules count in days: round up, so never sooner than the matrix says
    return {"type": "Age", "maxAge": days * DAY_S}


def _placement(data_type: str, entry: object) -> ItemPlacement:
    names = {field.name for field in fields(ItemPlacement)}
    if not isinstance(entry, dict) or not set(entry) <= names:
        raise _refused(f"the placement of {data_type!r} is an object with {', '.join(sorted(names))}")
    if data_type in MATRIX:
        return replace(MATRIX[data_type], **entry)
    if "tier" not in entry:
        raise _refused(f"the placement of {data_type!r} names no tier")
    return ItemPlacement(**cast("dict[str, Any]", entry))


def _refused(message: str) -> Misconfigured:
    return Misconfigured(message, code="invalid_placement")
