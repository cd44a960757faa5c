"""Put tiers together: `MemoryBuilder(namespace, clock).with_hot(…).with_warm(…).with_cold(…).with_rules(…).build()`."""

from __future__ import annotations

from typing import Any, cast

from retain.errors import Misconfigured
from retain.items.client import MemoryClient
from retain.items.pii import Sealer
from retain.items.placement import MATRIX, Matrix, checked_matrix
from retain.items.rules import MemoryRules, Session, contradiction
from retain.items.tiers.plain_catalogue import PlainCatalogue
from retain.items.tiers.protocols import ColdMemory, HotMemory, ItemCatalogue, WarmMemory
from retain.items.tiers.tiers import Tiers
from retain.namespace import Namespace
from retain.ports import Clock

HOT_TTL_S = 900
"""How long a hot copy lives unless the rules say otherwise."""

_RESERVED = ("agent_working", "gateway_key", "gateway_tool", "gateway_credential")
"""Names with which Retain's other keys begin in the KV namespace that holds the hot tier."""


class MemoryBuilder:
    """Builds the memory of one namespace. Every `with_…` returns the builder; a second one replaces the first."""

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

    def with_rules(self, **rules: Any) -> MemoryBuilder:
        """Use rules: the fields of `MemoryRules`. Raises: Misconfigured (code `contradictory_rules`, `unknown_rule`)."""
        unknown = sorted(set(rules) - set(MemoryRules.__slots__))
        if unknown:
            raise Misconfigured(f"there is no rule {', '.join(unknown)}", code="unknown_rule")
        self._rules = MemoryRules(**rules)
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
        """Go on with a session: reads show nothing older than what it saw."""
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
        self._check_tiers()
        tiers = Tiers(self._hot, self._catalogue(), self._cold)
        return MemoryClient(
            self._namespace,
            tiers,
            self._settled(),
            MATRIX if self._matrix is None else self._matrix,
            self._clock,
            self._sealer,
            Session() if self._session is None else self._session,
        )

    def _catalogue(self) -> ItemCatalogue | None:
        if self._warm is None:
            return None
        if all(callable(getattr(self._warm, name, None)) for name in ("find", "version", "write", "bury", "copy_in")):
            return cast("ItemCatalogue", self._warm)
        return PlainCatalogue(self._warm, self._clock)

    def _check_tiers(self) -> None:
        present = {
            name for name, tier in (("hot", self._hot), ("warm", self._warm), ("cold", self._cold)) if tier is not None
        }
        if not present:
            raise Misconfigured("a memory needs a tier: with_hot, with_warm or with_cold", code="no_tiers")
        if present == {"hot", "cold"}:
            raise Misconfigured(
                "hot and cold need a warm tier between them: it decides which copy is the newer one",
                code="tier_missing",
            )
        for kind, placement in (self._matrix or {}).items():
            if placement.tier not in present:
                raise Misconfigured(
                    f"{kind} belongs in the {placement.tier} tier, which is missing", code="tier_missing"
                )

    def _settled(self) -> MemoryRules:
        rules, hot, warm, cold = self._rules, self._hot is not None, self._warm is not None, self._cold is not None
        several = sum((hot, warm, cold)) > 1
        for name in ("read_fallback", "promote_on_read"):
            if getattr(rules, name) and not several:
                raise contradiction(f"{name} needs more than one tier")
        if rules.write_through and not (hot and warm):
            raise contradiction("write_through needs a hot and a warm tier")
        if rules.hot_ttl is not None and not hot:
            raise contradiction("hot_ttl needs a hot tier")
        fallback = several if rules.read_fallback is None else rules.read_fallback
        through = fallback and hot and warm if rules.write_through is None else rules.write_through
        if rules.hot_reads == "checked" and not (hot and warm and fallback and through):
            raise contradiction("checked reads compare hot with warm: they need both, read_fallback and write_through")
        return MemoryRules(
            read_fallback=fallback,
            promote_on_read=fallback if rules.promote_on_read is None else rules.promote_on_read,
            write_through=through,
            hot_ttl=HOT_TTL_S if rules.hot_ttl is None else rules.hot_ttl,
            hot_reads=rules.hot_reads,
        )
