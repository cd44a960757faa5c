"""YAML from a person's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from yaml import MappingNode, Node, SafeLoader, ScalarNode, YAMLError, load
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


def read_yaml_file(path: Path) -> dict[str, object]:
    """Return the mapping in a YAML file in UTF-8, which may be JSON.

    Raises: ValueError, which says why, when the file cannot be read or has something else, also what cannot be sent as JSON.
    """
    try:
        found = read_yaml(path.read_text(encoding="utf-8-sig"))
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except (OSError, ValueError, TypeError, YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} does not hold a mapping")
    return found


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
