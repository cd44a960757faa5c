"""Put tiers together: `MemoryBuilder(namespace, clock).with_hot(…).with_warm(…).with_cold(…).with_rules(…).build()`."""

from __future__ import annotations

from retain.errors import Misconfigured
from retain.items.client import MemoryClient
from retain.items.entry import Tier
from retain.items.item_checks import ItemChecks
from retain.items.pii import Sealer
from retain.items.placement import MATRIX, Matrix, checked_matrix
from retain.items.rules import HotReads, MemoryRules, Session
from retain.items.single_tier import ColdClient, HotClient
from retain.items.tiered_client import TieredClient
from retain.items.tiers.plain_catalogue import PlainCatalogue
from retain.items.tiers.protocols import ColdMemory, HotMemory, ItemCatalogue, WarmMemory
from retain.items.tiers.tiers import Tiers
from retain.namespace import Namespace
from retain.ports import Clock

_RESERVED = ("agent_working", "gateway_key", "gateway_tool", "gateway_credential")
"""Names with which Retain's other keys begin in the KV namespace that holds the hot tier."""


class MemoryBuilder:
    """Builds the client of tiered memory for one namespace.

    Tiered memory is what a program sees of items: `MemoryBuilder` and `MemoryClient` are its two public names, and its
    values are items. Every `with_…` returns the builder; a second one replaces the first.
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
        """Use a warm tier: a `ItemCatalogue`, or one of the three methods alone, which becomes one by `PlainCatalogue`."""
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
        """Use a matrix instead of the usual one. Every tier that it names must be there."""
        self._matrix = checked_matrix(matrix)
        return self

    def with_pii(self, sealer: Sealer) -> MemoryBuilder:
        """Seal values that hold PII. Without it, such a value is refused."""
        self._sealer = sealer
        return self

    def with_session(self, session: Session) -> MemoryBuilder:
        """Continue a session: reads show nothing older than what it saw."""
        self._session = session
        return self

    def build(self) -> MemoryClient:
        """Return the memory.

        Raises: Misconfigured (codes `no_tiers`, `tier_missing`, `contradictory_rules`, `reserved_service`).
        """
        if self._namespace.service in _RESERVED:
            raise Misconfigured(
                f"{self._namespace.service} is the beginning of Retain's own keys; name the service otherwise",
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
        """Return the tiers that there are, enough of them for each other and for the placements."""
        there: dict[Tier, bool] = {
            "hot": self._hot is not None,
            "warm": self._warm is not None,
            "cold": self._cold is not None,
        }
        present = frozenset(tier for tier, given in there.items() if given)
        if not present:
            raise _without_tiers()
        if present == {"hot", "cold"}:
            raise Misconfigured(
                "hot and cold need a warm tier between them: it decides which copy is the newer one",
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
