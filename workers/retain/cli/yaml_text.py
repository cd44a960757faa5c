"""YAML from a person's file."""

from __future__ import annotations

from typing import Any

from yaml import MappingNode, Node, SafeLoader, ScalarNode, load
from yaml.composer import ComposerError

from retain.json_text import MAX_NESTING, NestedTooDeeply, check_nested

MAX_VALUES = 100_000
"""Most values in one file, each alias counted as all that it repeats."""


class _OnceLoader(SafeLoader):
    """Refuses a key that a mapping has twice: YAML forbids it, and one of the two values would be lost.

    Refuses nesting deeper than MAX_NESTING, too: the composer calls itself for each level.
    Source: https://yaml.org/spec/1.2.2/#3213-node-comparison
    """

    _level = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self._level += 1
        if self._level > MAX_NESTING + 1:
            raise ComposerError(None, None, str(NestedTooDeeply(MAX_NESTING)), self.get_mark())
        node: Node | None = super().compose_node(parent, index)
        self._level -= 1
        return node

    def compose_mapping_node(self, anchor: dict[Any, Node]) -> MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, ScalarNode):
                continue
            named = (key.tag, key.value)
            if named in seen:
                raise ComposerError(None, None, f"the key {key.value} is there twice", key.start_mark)
            seen.add(named)
        return node


def read_yaml(text: str) -> object:
    """Return the value of a YAML text, which may be JSON.

    Raises: yaml.YAMLError when it is not YAML, names a type of Python, has a key twice in one mapping, is nested deeper
        than MAX_NESTING, or has more than MAX_VALUES values, as aliases of aliases do.
    """
    value: object = load(text, _OnceLoader)  # noqa: S506 -- a SafeLoader
    try:
        check_nested(value)
    except NestedTooDeeply as error:  # by aliases, one of which may name what it is in
        raise ComposerError(None, None, str(error)) from error
    if _size(value, {}) > MAX_VALUES:
        raise ComposerError(None, None, f"more than {MAX_VALUES} values, those that aliases repeat included")
    return value


def _size(value: object, known: dict[int, int]) -> int:
    """Return how many values are in a value, counting what is in it twice twice. known: by the id of a value."""
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]
