"""YAML from a person's file."""

from __future__ import annotations

from typing import Any

from yaml import MappingNode, Node, SafeLoader, ScalarNode, load
from yaml.composer import ComposerError


class _OnceLoader(SafeLoader):
    """Refuses a key that a mapping has twice: YAML forbids it, and one of the two values would be lost.

    Source: https://yaml.org/spec/1.2.2/#3213-node-comparison
    """

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

    Raises: yaml.YAMLError when it is not YAML, names a type of Python, or has a key twice in one mapping.
    """
    return load(text, _OnceLoader)  # noqa: S506 -- a SafeLoader
