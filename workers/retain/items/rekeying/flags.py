"""The two flags and the legacy patterns of a deployment: which keys a read asks, and which key a write uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput, Misconfigured
from retain.items.rekeying.patterns import LegacyPattern, load_patterns
from retain.namespace import ItemKey
from retain.settings import NamespaceSettings


@dataclass(frozen=True, slots=True)
class Namespacing:
    """How items are found by canonical and legacy keys.

    write_canonical, compat_read: `MEMORY_NAMESPACE_WRITE_CANONICAL`, `MEMORY_NAMESPACE_COMPAT_READ`. patterns: in the
    order in which their keys are read. Without patterns there are only canonical keys, whatever the flags are.
    """

    write_canonical: bool = False
    compat_read: bool = False
    patterns: tuple[LegacyPattern, ...] = ()

    @property
    def repairs(self) -> bool:
        """Whether a legacy hit may be copied to its canonical key: only if nothing is written to legacy keys."""
        return self.write_canonical and self.compat_read

    def legacy_keys(self, item: ItemKey) -> Sequence[str]:
        """Return all the legacy keys that the item may have, in the order of the patterns."""
        keys = (pattern.key_of(item) for pattern in self.patterns)
        return [key for key in keys if key is not None]

    def item_of(self, key: str) -> ItemKey | None:
        """Return the item with this canonical or legacy key, or None when it is neither."""
        try:
            return ItemKey.parse(key)
        except InvalidInput:
            found = (pattern.item_of(key) for pattern in self.patterns)
            return next((item for item in found if item is not None), None)

    def keys_of(self, tenant_id: str, key: str) -> Sequence[str]:
        """Return every key under which a value of the same item of the tenant can be, in the order in which reads ask them.

        It is the key alone when it is not the key of an item of the tenant.
        """
        item = self.item_of(key)
        if item is None or item.namespace.tenant_id != tenant_id:
            return [key]
        return [str(item), *self.legacy_keys(item)]

    def is_legacy(self, key: str) -> bool:
        """Return whether an item has this legacy key."""
        item = self.item_of(key)
        return item is not None and key != str(item)

    def hidden_by(self, tenant_id: str, key: str) -> Sequence[str]:
        """Return the keys of the same item that a read asks only after this one: what is under them shows without it."""
        keys = self.keys_of(tenant_id, key)
        return keys[keys.index(key) + 1 :]

    def read_keys(self, legacy: Sequence[str]) -> Sequence[str]:
        """Return those of an item's legacy keys that a read asks after a canonical miss, in order.

        Without compatible reads it is only the key that is written, so that every write can be read.
        """
        if self.compat_read:
            return legacy
        return () if self.write_canonical else legacy[:1]


def namespacing(settings: NamespaceSettings) -> Namespacing:
    """Return the flags and patterns that the settings define.

    Raises: Misconfigured (codes `invalid_legacy_pattern`, `ambiguous_legacy_pattern`; `invalid_setting` for compatible
        reads without a legacy pattern to read).
    """
    patterns = load_patterns(settings.legacy_patterns)
    if settings.compat_read and not patterns:
        raise Misconfigured(
            "MEMORY_NAMESPACE_COMPAT_READ has nothing to read: MEMORY_NAMESPACE_LEGACY_PATTERNS is empty",
            code="invalid_setting",
        )
    return Namespacing(settings.write_canonical, settings.compat_read, patterns)
