"""The code that fastjsonschema generates for a JSON Schema, of a bounded size and with a bounded number of steps.

The library writes the whole schema, with what its references name, into each line that reports a violation: a schema of
15 KB became gigabytes. Here a line has the one rule that it reports, if that is short.
"""

# mypy: disable-error-code="no-untyped-call"
# The library's methods have no types.

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastjsonschema.draft04 import CodeGeneratorDraft04
from fastjsonschema.draft06 import CodeGeneratorDraft06
from fastjsonschema.draft07 import CodeGeneratorDraft07
from fastjsonschema.draft2019 import CodeGeneratorDraft2019
from fastjsonschema.generator import VALIDATION_EXCEPTIONS
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
        super().generate_ref()

    def _enum_value_matches(self, var: str, value: object) -> str:
        self._grow(3 * len(var))  # the code for a value names up to three times where it is
        matches: str = super()._enum_value_matches(var, value)
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


class _Draft2020(_BoundedCode, CodeGeneratorDraft2019):
    """Draft 2020-12, of which the library knows the formats.

    Source: https://json-schema.org/draft/2020-12/json-schema-core, https://json-schema.org/draft/2020-12/json-schema-validation
    """

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._json_keywords_to_function |= {
            "prefixItems": self._generate_prefix_items,
            "dependentRequired": self._generate_dependent_required,
            "dependentSchemas": self._generate_dependent_schemas,
        }

    def _generate_func_code_block(self, definition: Any) -> Any:
        if (
            isinstance(definition, dict) and "$ref" in definition
        ):  # the drafts before ignore what is next to a reference
            self.generate_ref()
            return 1 + self.run_generate_functions(definition)
        return super()._generate_func_code_block(definition)

    def _generate_prefix_items(self) -> None:
        self.create_variable_is_list()
        with self.l("if {variable}_is_list:"):
            self.create_variable_with_length()
            for place, schema in enumerate(self._definition["prefixItems"]):
                with self.l("if {variable}_len > {}:", place):
                    self.l("{variable}__{0} = {variable}[{0}]", place)
                    self._generate_for(schema, f"{self._variable}__{place}", f"[{place}]")

    def generate_items(self) -> None:
        first = len(self._definition.get("prefixItems", ()))
        if not first:
            super().generate_items()
            return
        self.create_variable_is_list()
        loop = "for {variable}_x, {variable}_item in enumerate({variable}[{0}:], {0}):"
        with self.l("if {variable}_is_list:"), self.l(loop, first):
            self._generate_for(self._definition["items"], f"{self._variable}_item", f"[{{{self._variable}_x}}]")

    def generate_contains(self) -> None:
        self.create_variable_is_list()
        with self.l("if {variable}_is_list:"):
            self.l("{variable}_contained = 0")
            with self.l("for {variable}_key in {variable}:"):
                with self.l("try:"):
                    with self.trial_validation():
                        self._generate_for(self._definition["contains"], f"{self._variable}_key", "")
                    self.l("{variable}_contained += 1")
                self.l("except {}: pass", VALIDATION_EXCEPTIONS)
            least = "minContains" if "minContains" in self._definition else "contains"
            with self.l("if {variable}_contained < {}:", int(self._definition.get("minContains", 1))):
                self.exc("", rule=least)
            if "maxContains" in self._definition:
                with self.l("if {variable}_contained > {}:", int(self._definition["maxContains"])):
                    self.exc("", rule="maxContains")

    def _generate_dependent_required(self) -> None:
        self.create_variable_is_dict()
        for name, others in self._definition["dependentRequired"].items():
            for other in others:
                quoted = (self.e(name), self.e(other))
                with self.l('if {variable}_is_dict and "{}" in {variable} and "{}" not in {variable}:', *quoted):
                    self.exc("", rule="dependentRequired")

    def _generate_dependent_schemas(self) -> None:
        self.create_variable_is_dict()
        for name, schema in self._definition["dependentSchemas"].items():
            with self.l('if {variable}_is_dict and "{}" in {variable}:', self.e(name)):
                self._generate_for(schema, self._variable, "")

    def _generate_for(self, schema: object, variable: str | None, path: str) -> None:
        """Generate a schema's code for a variable. path: from the value that has it."""
        self.l("pass")
        self.generate_func_code_block(schema, variable, f"{self._variable_name}{path}", clear_variables=True)


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
    draft = next((one for name, one in _DRAFTS.items() if name in written), _Draft2020)
    generator = draft(schema, resolver=resolver, use_default=False)
    names = {**generator.global_state, "step": step}
    exec(generator.func_code, names)  # noqa: S102 - as the library does it
    return names[resolver.get_scope_name()], names["REGEX_PATTERNS"]


def _shown(definition: object) -> str | None:
    shown = json.dumps(definition)
    return shown if len(shown) <= MAX_SHOWN else None
