"""The code that fastjsonschema generates for a JSON Schema, of a bounded size and with a bounded number of steps.

The library writes the whole schema, with what its references name, into each line that reports a violation: a schema of
15 KB became gigabytes. Here a line has the one rule that it reports, if that is short.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastjsonschema.draft04 import CodeGeneratorDraft04
from fastjsonschema.draft06 import CodeGeneratorDraft06
from fastjsonschema.draft07 import CodeGeneratorDraft07
from fastjsonschema.draft2019 import CodeGeneratorDraft2019
from fastjsonschema.ref_resolver import RefResolver

MAX_CODE_CHARACTERS = 262_144
"""Longest code of one schema. What compiles it takes about a hundred times as many bytes."""
MAX_SHOWN = 200
"""Longest definition of a rule that a violation shows, in characters of JSON."""

Step = Callable[[], None]
"""Is called before each reference that a check follows."""


class TooManyRules(ValueError):
    """The code of a schema would be too long."""


class _Functions(RefResolver):
    """Gives each schema that a reference names a function of its own: the library gives `#/a-B` and `#/a_b` the same one."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        self._functions: dict[str, str] = {}
        super().__init__(*parts, **named)

    def get_scope_name(self) -> str:
        return self._functions.setdefault(self.get_uri(), f"validate_{len(self._functions)}")


class _BoundedCode(CodeGeneratorDraft04):
    """The changes to every draft's generator. The methods' names are the library's."""

    _characters = 0
    _definition: Any

    def l(self, line: str, *parts: Any, **named: Any) -> Any:  # noqa: E743
        block = super().l(line, *parts, **named)
        self._grow(len(self._code[-1]))
        return block

    def exc(self, msg: str, *args: Any, append_to_msg: str | None = None, rule: str | None = None) -> None:
        del msg, args, append_to_msg  # nobody reads the message: it quotes the value
        definition = {} if rule is None else {rule: _shown(self._definition[rule])}
        self.l(
            'raise JsonSchemaValueException("", name="{name}", definition={definition}, rule={rule})',
            definition=repr(definition),
            rule=repr(rule),
        )

    def generate_ref(self) -> None:
        self.l("step()", optimize=False)
        super().generate_ref()  # type: ignore[no-untyped-call]

    def _enum_value_matches(self, var: str, value: object) -> str:
        self._grow(3 * len(var))  # the code for a value names up to three times where it is
        matches: str = super()._enum_value_matches(var, value)  # type: ignore[no-untyped-call]
        return matches

    def _grow(self, characters: int) -> None:
        self._characters += characters
        if self._characters > MAX_CODE_CHARACTERS:
            raise TooManyRules("the schema has too many rules")


class _Draft04(_BoundedCode):
    """Draft 4."""


class _Draft06(_BoundedCode, CodeGeneratorDraft06):
    """Draft 6."""


class _Draft07(_BoundedCode, CodeGeneratorDraft07):
    """Draft 7."""


class _Draft2019(_BoundedCode, CodeGeneratorDraft2019):
    """Draft 2019-09."""


_DRAFTS: Mapping[str, type[_BoundedCode]] = {"draft-04": _Draft04, "draft-06": _Draft06, "draft-07": _Draft07}


def generated(
    schema: dict[str, Any], handlers: Mapping[str, Callable[[str], Any]], step: Step
) -> tuple[Callable[[object], object], dict[str, Any]]:
    """Return the function that checks a value, and the patterns that it searches, by their text.

    The function raises JsonSchemaValueException, whose `rule_definition` is the rule's JSON, or None if that is long.
    Raises: TooManyRules; SyntaxError or RecursionError for one that is nested too deeply; whatever an invalid one causes.
    """
    resolver = _Functions.from_schema(schema, handlers=handlers, store={})
    written = schema.get("$schema", "")
    draft = next((one for name, one in _DRAFTS.items() if name in written), _Draft2019)
    generator = draft(schema, resolver=resolver, use_default=False)
    names = {**generator.global_state, "step": step}
    exec(generator.func_code, names)  # noqa: S102 - as the library does it
    return names[resolver.get_scope_name()], names["REGEX_PATTERNS"]


def _shown(definition: object) -> str | None:
    shown = json.dumps(definition)
    return shown if len(shown) <= MAX_SHOWN else None
