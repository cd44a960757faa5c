"""Legacy patterns: the keys that items had before the canonical ones, as configuration.

A pattern is a template such as `{tenantId}:{sessionId}:{memoryKind}:{entityId}`. Each of the five segments of a canonical
key is either in the template or fixed, so that a legacy key belongs to exactly one item, and so to one tenant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retain.errors import InvalidInput, Misconfigured
from retain.json_text import read_json
from retain.namespace import ItemKey, Namespace

MAX_PATTERNS = 8
"""Most legacy keys that a read may have to ask after a miss."""
MAX_LITERAL_BYTES = 128
"""Longest text of a template outside its placeholders: with five segments, a legacy key stays under KV's 512 bytes."""
SEGMENTS = ("service", "tenantId", "sessionId", "memoryKind", "entityId")

_WORD = r"[A-Za-z0-9._@+-]"
_DELIMITERS = re.compile(r"[:/|#,;=~]+")
_PART = re.compile(rf"({_WORD}*)(?:\{{([A-Za-z]+)\}})?({_WORD}*)")


@dataclass(frozen=True, slots=True)
class _PatternPart:
    """The text between two delimiters: literal text with at most one segment in it."""

    before: str
    segment: str | None
    after: str

    def read(self, text: str) -> str | None:
        """Return the segment's value, "" for a literal part; None when the text does not match."""
        if self.segment is None:
            return "" if text == self.before else None
        if len(text) <= len(self.before) + len(self.after):
            return None
        if not (text.startswith(self.before) and text.endswith(self.after)):
            return None
        return text[len(self.before) : len(text) - len(self.after)]


@dataclass(frozen=True, slots=True)
class LegacyPattern:
    """One earlier form of keys.

    fixed: the segments that are not in the template, by name. The pattern applies only to items with these values.
    """

    template: str
    fixed: Mapping[str, str]
    _parts: tuple[_PatternPart, ...] = field(repr=False)
    _delimiters: tuple[str, ...] = field(repr=False)

    @staticmethod
    def of(template: str, fixed: Mapping[str, str]) -> LegacyPattern:
        """Return the pattern.

        Raises: Misconfigured (code `invalid_legacy_pattern`) for a template that cannot be parsed unambiguously;
            (code `ambiguous_legacy_pattern`) when one of its keys could belong to several items or tenants.
        """
        delimiters = tuple(_DELIMITERS.findall(template))
        parts = tuple(_part(template, text) for text in _DELIMITERS.split(template))
        named = [part.segment for part in parts if part.segment is not None]
        if len(set(named)) != len(named) or set(named) & fixed.keys():
            raise _invalid(template, "it has a segment twice, or one that is fixed as well")
        if "entityId" not in named:
            raise _invalid(template, "it must contain entityId")
        missing = [name for name in SEGMENTS if name not in named and name not in fixed]
        if missing:
            raise Misconfigured(
                f"a key of the legacy pattern {template!r} could belong to several items:"
                f" put {', '.join(missing)} into the template, or give a fixed value",
                code="ambiguous_legacy_pattern",
            )
        literal = len(template) - sum(len(name) + 2 for name in named)
        if literal > MAX_LITERAL_BYTES:
            raise _invalid(template, f"it has more than {MAX_LITERAL_BYTES} bytes besides its placeholders")
        pattern = LegacyPattern(template, dict(fixed), parts, delimiters)
        try:
            _item({**dict.fromkeys(SEGMENTS, "a"), **pattern.fixed})
        except InvalidInput as error:
            raise _invalid(template, f"a fixed segment is invalid: {error.message}") from error
        return pattern

    @property
    def prefix(self) -> str:
        """The text that every key of this pattern begins with, up to its first placeholder."""
        return self.template.partition("{")[0]

    def prefix_of(self, tenant_id: str) -> str | None:
        """Return the text that every key of the tenant begins with, or None when the pattern has no keys of the tenant."""
        if self.fixed.get("tenantId", tenant_id) != tenant_id:
            return None
        return self.template.replace("{tenantId}", tenant_id).partition("{")[0]

    def key_of(self, item: ItemKey) -> str | None:
        """Return the item's legacy key, or None when the pattern does not apply to the item."""
        values = _values(item)
        if any(values[name] != value for name, value in self.fixed.items()):
            return None
        texts = [p.before + (values[p.segment] if p.segment else "") + p.after for p in self._parts]
        return texts[0] + "".join(d + t for d, t in zip(self._delimiters, texts[1:], strict=True))

    def item_of(self, key: str) -> ItemKey | None:
        """Return the item with this legacy key, or None when the key does not match the pattern."""
        texts = _DELIMITERS.split(key)
        if tuple(_DELIMITERS.findall(key)) != self._delimiters:
            return None
        values = dict(self.fixed)
        for part, text in zip(self._parts, texts, strict=True):
            value = part.read(text)
            if value is None:
                return None
            if part.segment is not None:
                values[part.segment] = value
        try:
            return _item(values)
        except InvalidInput:
            return None

    def overlaps(self, other: LegacyPattern) -> bool:
        """Return whether a text may be a key of both. When in doubt, True."""
        if self._delimiters != other._delimiters:
            return False
        return all(_compatible(a, b) for a, b in zip(self._parts, other._parts, strict=True))


def load_patterns(text: str) -> tuple[LegacyPattern, ...]:
    """Return the configured patterns in the order in which their keys are read.

    text: a JSON list of objects with "template" and the fixed segments; empty for none.
    Raises: Misconfigured (codes `invalid_legacy_pattern`, `ambiguous_legacy_pattern`).
    """
    if not text.strip():
        return ()
    try:
        found = read_json(text)
    except ValueError as error:
        raise Misconfigured("the legacy patterns are not JSON", code="invalid_legacy_pattern") from error
    if not isinstance(found, list) or len(found) > MAX_PATTERNS:
        raise Misconfigured(
            f"the legacy patterns must be a list of at most {MAX_PATTERNS}", code="invalid_legacy_pattern"
        )
    patterns = tuple(_loaded(entry) for entry in found)
    canonical = LegacyPattern.of("{service}:{tenantId}:{sessionId}:{memoryKind}:{entityId}", {})
    _refuse_overlaps((canonical, *patterns))
    return patterns


def _loaded(entry: Any) -> LegacyPattern:
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        raise _invalid(str(entry), "a pattern must be an object of strings")
    if not entry.keys() <= {"template", *SEGMENTS} or not entry.get("template"):
        raise _invalid(str(entry), f"it must have a template, and may have {', '.join(SEGMENTS)}")
    return LegacyPattern.of(entry["template"], {name: entry[name] for name in SEGMENTS if name in entry})


def _refuse_overlaps(patterns: Sequence[LegacyPattern]) -> None:
    for number, pattern in enumerate(patterns):
        for other in patterns[:number]:
            if pattern.overlaps(other):
                raise Misconfigured(
                    f"a key could match both {pattern.template!r} and {other.template!r}",
                    code="ambiguous_legacy_pattern",
                )


def _part(template: str, text: str) -> _PatternPart:
    found = _PART.fullmatch(text)
    if found is None or not text:
        raise _invalid(template, "between two delimiters there must be text with at most one placeholder")
    before, segment, after = found.groups()
    if segment is not None and segment not in SEGMENTS:
        raise _invalid(template, f"there is no segment {segment!r}")
    return _PatternPart(before, segment, after)


def _compatible(one: _PatternPart, other: _PatternPart) -> bool:
    if one.segment is None:
        return other.read(one.before) is not None
    if other.segment is None:
        return one.read(other.before) is not None
    begin = one.before.startswith(other.before) or other.before.startswith(one.before)
    return begin and (one.after.endswith(other.after) or other.after.endswith(one.after))


def _values(item: ItemKey) -> dict[str, str]:
    space = item.namespace
    return dict(
        zip(SEGMENTS, (space.service, space.tenant_id, space.session_id, item.data_type, item.entity_id), strict=True)
    )


def _item(values: Mapping[str, str]) -> ItemKey:
    service, tenant_id, session_id, data_type, entity_id = (values[name] for name in SEGMENTS)
    return ItemKey(Namespace(service, tenant_id, session_id), data_type, entity_id)


def _invalid(template: str, problem: str) -> Misconfigured:
    return Misconfigured(f"the legacy pattern {template!r} cannot be used: {problem}", code="invalid_legacy_pattern")
