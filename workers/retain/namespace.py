"""Canonical keys: `<service>:<tenantId>:<sessionId>`, and `<namespaceKey>:<memoryKind>:<entityId>` for one item in it.

The memory kind is the item's data type. One parser and one formatter; formatting a parsed key gives the same text.
`:` is a delimiter only.
"""

from __future__ import annotations

from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.identifiers import check_segment, namespace_key


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where the items of one session live. str() gives the namespace key.

    Raises: InvalidInput (codes `invalid_namespace`, `invalid_tenant`) for an empty or wildcard segment, a delimiter or
        another character that a segment must not contain.
    """

    service: str
    tenant_id: str
    session_id: str

    def __post_init__(self) -> None:
        namespace_key(self.service, self.tenant_id, self.session_id)

    def __str__(self) -> str:
        return namespace_key(self.service, self.tenant_id, self.session_id)

    @staticmethod
    def parse(text: str) -> Namespace:
        """Return the namespace whose key the text is. Raises: InvalidInput, as the constructor."""
        return Namespace(*_segments(text, 3))


@dataclass(frozen=True, slots=True)
class ItemKey:
    """The key of one item. str() gives its text, at most 300 bytes. Raises: InvalidInput, as `Namespace`."""

    namespace: Namespace
    data_type: str
    entity_id: str

    def __post_init__(self) -> None:
        check_segment(self.data_type, "data type")
        check_segment(self.entity_id, "entity id")

    def __str__(self) -> str:
        return f"{self.namespace}:{self.data_type}:{self.entity_id}"

    @staticmethod
    def parse(text: str) -> ItemKey:
        """Return the item's key that the text spells. Raises: InvalidInput, as the constructor."""
        service, tenant_id, session_id, data_type, entity_id = _segments(text, 5)
        return ItemKey(Namespace(service, tenant_id, session_id), data_type, entity_id)


def _segments(text: str, count: int) -> list[str]:
    segments = text.split(":")
    if len(segments) != count:
        raise InvalidInput(f"such a key has {count} segments", code="invalid_namespace")
    return segments
