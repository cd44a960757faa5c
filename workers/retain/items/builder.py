"""Make a client of tiers: `MemoryBuilder(namespace, clock).with_hot(…).with_warm(…).with_cold(…).with_rules(…).build()`."""

from __future__ import annotations

from retain.errors import InvalidInput, Misconfigured
from retain.items.client import MemoryClient
from retain.items.entry import Tier
from retain.items.item_checks import ItemChecks
from retain.items.placement import MATRIX, Matrix, checked_matrix
from retain.items.rules import HotReads, MemoryRules, Session
from retain.items.single_tier import ColdClient, HotClient
from retain.items.tiered_client import TieredClient
from retain.items.tiers.plain_catalogue import PlainCatalogue
from retain.items.tiers.protocols import ColdMemory, HotMemory, ItemCatalogue, WarmMemory
from retain.items.tiers.tiers import Tiers
from retain.namespace import Namespace
from retain.ports import Clock
from retain.sealing.pii import Sealer

_RESERVED = ("agent_working", "gateway_key", "gateway_tool", "gateway_credential")
"""First segments of Retain's other keys in the KV namespace of the hot tier."""


class MemoryBuilder:
    """Builds the client of tiered memory for one namespace.

    Tiered memory is how a program uses items: `MemoryBuilder` and `MemoryClient` are its two public names, and its values
    are items. Every `with_…` returns the builder; a second call replaces the first.
    """

    def __init__(self, namespace: Namespace, clock: Clock) -> None:
        self._namespace = namespace
        self._clock = clock
        self._hot: HotMemory | None = None
        self._warm: WarmMemory | None = None
        self._cold: ColdMemory | None = None
        self._rules = MemoryRules()
        self._matrix: Matrix | None = None
        self._sealer: Sealer | None = None
        self._session: Session | None = None

    def with_hot(self, hot: HotMemory) -> MemoryBuilder:
        """Use a hot tier."""
        self._hot = hot
        return self

    def with_warm(self, warm: WarmMemory) -> MemoryBuilder:
        """Use a warm tier: an `ItemCatalogue`, or a plain `WarmMemory`, which `PlainCatalogue` turns into one."""
        self._warm = warm
        return self

    def with_cold(self, cold: ColdMemory) -> MemoryBuilder:
        """Use a cold tier."""
        self._cold = cold
        return self

    def with_rules(
        self,
        *,
        read_fallback: bool | None = None,
        promote_on_read: bool | None = None,
        write_through: bool | None = None,
        hot_ttl: int | None = None,
        hot_reads: HotReads = "session",
    ) -> MemoryBuilder:
        """Use rules: see `MemoryRules`. Raises: Misconfigured (code `contradictory_rules`)."""
        self._rules = MemoryRules(read_fallback, promote_on_read, write_through, hot_ttl, hot_reads)
        return self

    def with_placements(self, matrix: Matrix) -> MemoryBuilder:
        """Use this matrix instead of the built-in one. Every tier that it names must be present."""
        self._matrix = checked_matrix(matrix)
        return self

    def with_pii(self, sealer: Sealer) -> MemoryBuilder:
        """Seal values that contain PII. Without a sealer, such values are refused."""
        self._sealer = sealer
        return self

    def with_session(self, session: Session) -> MemoryBuilder:
        """Continue a session: reads return nothing older than what it has seen."""
        self._session = session
        return self

    def build(self) -> MemoryClient:
        """Return the client.

        Raises: Misconfigured (codes `no_tiers`, `tier_missing`, `contradictory_rules`); InvalidInput (code
            `reserved_service`).
        """
        if self._namespace.service in _RESERVED:
            raise InvalidInput(
                f"Retain's own keys begin with {self._namespace.service}; choose another service name",
                code="reserved_service",
            )
        tiers = self._tiers()
        rules, matrix = self._rules.resolved(tiers), MATRIX if self._matrix is None else self._matrix
        checks = ItemChecks(self._namespace, tiers, rules, matrix, self._clock, self._sealer)
        session = Session() if self._session is None else self._session
        if self._warm is not None:
            warm = self._warm if isinstance(self._warm, ItemCatalogue) else PlainCatalogue(self._warm, self._clock)
            return TieredClient(checks, Tiers(self._hot, warm, self._cold), rules, self._clock, session)
        if self._hot is not None:
            return HotClient(checks, self._hot, self._clock, session)
        if self._cold is not None:
            return ColdClient(checks, self._cold, session)
        raise _without_tiers()

    def _tiers(self) -> frozenset[Tier]:
        """Return the tiers that were given, after checking that the combination and the placements are possible."""
        given: dict[Tier, bool] = {
            "hot": self._hot is not None,
            "warm": self._warm is not None,
            "cold": self._cold is not None,
        }
        present = frozenset(tier for tier, is_given in given.items() if is_given)
        if not present:
            raise _without_tiers()
        if present == {"hot", "cold"}:
            raise Misconfigured(
                "hot and cold need a warm tier as well: it decides which copy is newer",
                code="tier_missing",
            )
        for data_type, placement in (self._matrix or {}).items():
            if placement.tier not in present:
                raise Misconfigured(
                    f"{data_type} belongs in the {placement.tier} tier, which is missing", code="tier_missing"
                )
        return present


def _without_tiers() -> Misconfigured:
    return Misconfigured("a memory needs a tier: with_hot, with_warm or with_cold", code="no_tiers")
