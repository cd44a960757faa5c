"""docs/backends.md has all that a backend's author needs: it is compared with the code, and its examples pass the suites."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

import pytest

from retain import errors
from retain.contracts.chat import ChatMemory, ClearableChatMemory
from retain.contracts.documents import best, check_model, check_top_k, normalised, prepared, similarity
from retain.contracts.messages import message_from, message_texts
from retain.contracts.vectors import DeletableVectorMemory, RetrievedDocument, VectorDocument, VectorMemory
from retain.models.chat import ChatMessage, ToolCall
from retain.models.embedding import Embedder
from retain.namespace import Namespace
from retain.testing import ChatMemorySuite, Suite, VectorMemorySuite
from tests.contracts import caught
from tests.docs.markdown import page, spans
from tests.docs.shell import commands
from tools.paths import ROOT

_BACKENDS = page("docs/backends.md")
_CONTRACTS = page("docs/contracts.md")
_EXAMPLES: dict[str, type[Suite]] = {
    "file_chat_memory": ChatMemorySuite,
    "sqlite_vector_memory": VectorMemorySuite,
}
_FILES = [f"examples/{prefix}{name}.py" for name in _EXAMPLES for prefix in ("", "test_")]
_SUITES: dict[str, type[Suite]] = caught.SUITES
_PROTOCOLS: tuple[type, ...] = (ChatMemory, ClearableChatMemory, VectorMemory, DeletableVectorMemory, Embedder)
_CLASSES: tuple[type, ...] = (ChatMessage, ToolCall, VectorDocument, RetrievedDocument, Namespace)


@pytest.mark.parametrize("name", _FILES)
def test_the_page_shows_the_examples_files_as_they_are(name: str) -> None:
    assert (ROOT / name).read_text() in _BACKENDS.blocks("python")


@pytest.mark.parametrize("name", _EXAMPLES)
def test_the_examples_are_short(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < 90


@pytest.mark.parametrize(
    ("example", "command"), list(zip(_EXAMPLES, commands(_BACKENDS), strict=True)), ids=list(_EXAMPLES)
)
def test_the_pages_commands_run_every_test_of_the_suites_against_the_examples(example: str, command: str) -> None:
    variable, _, *arguments = shlex.split(command)
    environment = {**os.environ, **dict([variable.split("=", 1)])}
    done = subprocess.run(
        [sys.executable, *arguments, "-v"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    passed = re.findall(r"::(test_\w+) PASSED", done.stdout)
    assert sorted(passed) == sorted(_EXAMPLES[example].names()), done.stdout + done.stderr


def test_the_pages_imports_work_and_are_all_that_its_examples_need() -> None:
    [imports] = [block for block in _BACKENDS.blocks("python") if block.startswith("from retain.contracts.chat")]
    names: dict[str, object] = {}
    exec(compile(imports, "docs/backends.md", "exec"), names)
    used = {
        name
        for file in _FILES
        for line in re.findall(r"^from retain[\w.]* import (.*)$", (ROOT / file).read_text(), re.MULTILINE)
        for name in line.split(", ")
    }
    assert used - names.keys() == {"Vector"}, "the page says what a Vector is"


def test_the_page_gives_every_method_of_the_contracts_as_it_is() -> None:
    listed = [(spans(row[0])[0], spans(row[1])[0]) for row in _BACKENDS.rows() if spans(row[0])[:1] and _is_method(row)]
    assert sorted(listed) == sorted(
        (protocol.__name__, written)
        for protocol in _PROTOCOLS
        for name, member in vars(protocol).items()
        if not name.startswith("_") and (written := _written(name, member))
    )


def _is_method(row: list[str]) -> bool:
    return len(row) == 3 and spans(row[0])[0] in {protocol.__name__ for protocol in _PROTOCOLS}


def _written(name: str, member: object) -> str:
    """Return how the page writes a method or a property."""
    if isinstance(member, property):
        return f"{name}: {inspect.signature(member.fget).return_annotation}" if member.fget else ""
    if not inspect.isfunction(member):
        return ""
    return (
        f"{name}{inspect.signature(member)}".replace("(self, ", "(")
        .replace("(self)", "()")
        .replace("'", "")
        .replace("float | None", "float or None")
    )


def test_the_page_gives_every_field_with_its_default() -> None:
    listed = [
        (spans(row[0])[0], spans(row[1])[0], "".join(spans(row[3])))
        for row in _BACKENDS.rows()
        if len(row) == 5 and row[0] != "class"
    ]
    assert listed == [(kind.__name__, field.name, _default(field)) for kind in _CLASSES for field in fields(kind)]


def _default(field: Any) -> str:
    if field.default_factory is not MISSING:
        return repr(field.default_factory())
    return "" if field.default is MISSING else repr(field.default)


def test_the_pages_errors_exist_with_their_classes() -> None:
    rows = [row for row in _BACKENDS.rows() if len(row) == 3 and spans(row[1])]
    rows = [row for row in rows if all(hasattr(errors, name) for name in spans(row[1]))]
    assert len(rows) == 12
    for _, classes, listed in rows:
        known = {code for name in spans(classes) for code in _codes(get_type_hints(getattr(errors, name))["code"])}
        assert set(spans(listed)) - {"index", "limit_bytes"} <= known, classes


def _codes(annotation: Any) -> set[str]:
    """Return the texts in a union of literals."""
    if isinstance(annotation, str):
        return {annotation}
    return {code for part in get_args(annotation) for code in _codes(part)}


def test_the_page_names_the_functions_that_check_with_their_parameters() -> None:
    listed = {
        row[0].split("(")[0].strip("`"): spans(row[0])[0]
        for row in _BACKENDS.rows()
        if row[0].startswith("`") and "(" in row[0]
    }
    for function in (message_texts, message_from, prepared, normalised, similarity, best, check_model, check_top_k):
        parameters = ", ".join(inspect.signature(function).parameters)
        written = re.sub(r": int|=None|=\"\"|\*, ", "", listed[function.__name__].split("(")[1].rstrip(")"))
        assert written == parameters


def test_the_page_names_every_law_with_its_test() -> None:
    listed = [
        (row[0].split(":")[0], *spans(row[1]))
        for row in _BACKENDS.rows()
        if len(row) == 2 and re.match(r"\w+: ", row[0])
    ]
    assert sorted(listed) == sorted((contract, name) for contract, suite in _SUITES.items() for name in suite.names())


def test_the_page_of_the_contracts_names_each_invariant_with_its_test() -> None:
    listed = [
        (row[0], spans(row[2])) for row in _CONTRACTS.rows() if len(row) == 4 and re.fullmatch(r"[CVE]M?\d", row[0])
    ]
    numbered = [name for suite in _SUITES.values() for name in suite.names() if name.split("_")[1][-1].isdigit()]
    assert len(numbered) == 17
    assert listed == [(name.split("_")[1].upper(), [name]) for name in numbered]


def test_the_page_of_the_contracts_states_the_law_of_every_other_test() -> None:
    listed = [
        spans(row[2])[-1]
        for row in _CONTRACTS.rows()
        if len(row) == 3 and spans(row[2])[-1:] and row[2].startswith("`test_")
    ]
    others = [name for suite in _SUITES.values() for name in suite.names() if not name.split("_")[1][-1].isdigit()]
    assert sorted(listed) == sorted(others)


def test_the_page_of_what_the_suites_catch_is_up_to_date() -> None:
    assert caught.main([]) == 0
