"""docs/library.md lists the public names, and each of its examples prints what it shows."""

from __future__ import annotations

import ast
import asyncio
import inspect
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import retain
from tests.docs.markdown import page, spans
from tools.paths import ROOT

_PAGE = page("docs/library.md")
_EXAMPLES = _PAGE.blocks("python")
_SHOWN = [
    shown if language == "text" else None
    for (before, _), (language, shown) in zip(_PAGE.fences(), [*_PAGE.fences()[1:], ("", "")], strict=True)
    if before == "python"
]

QUIET = """
import sys
before = set(sys.modules)
import retain
print(sorted(name for name in set(sys.modules) - before if name.startswith("retain")))
import retain.errors
print(sorted(set(sys.modules) & {"asyncio", "pydantic", "jwt", "ulid", "sqlite3"}))
"""


def first_program() -> str:
    """Return the page's first program."""
    return _EXAMPLES[0]


def test_the_page_lists_exactly_the_public_names() -> None:
    section = _PAGE.text.partition("\n## Public names\n")[2].partition("\n### ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in spans(row)]
    assert sorted(listed) == sorted(set(retain.__all__) - {"__version__"})
    assert "`retain.__version__`" in _PAGE.prose


@pytest.mark.parametrize("name", sorted(set(retain.__all__) - {"__version__"}))
def test_every_public_name_is_documented_and_used_by_an_example(name: str) -> None:
    assert inspect.getdoc(getattr(retain, name))
    assert any(name in ast.unparse(ast.parse(example)) for example in _EXAMPLES[1:])


def test_nothing_else_is_public() -> None:
    assert sorted(dir(retain)) == sorted(retain.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Indexer'"):
        getattr(retain, "Indexer")  # noqa: B009 -- a type checker refuses the attribute, as it should


def test_importing_the_library_loads_nothing_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUIET], cwd=ROOT / "workers", capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["['retain', 'retain.version']", "[]"]


def test_the_first_program_runs_and_a_second_start_stores_nothing(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT / "workers"), "PYTHONDONTWRITEBYTECODE": "1"}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", first_program()],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == _SHOWN[0]


def test_the_examples_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    with asyncio.Runner() as runner:
        for example, shown in zip(_EXAMPLES[1:], _SHOWN[1:], strict=True):
            code = compile(example, "library.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = types.FunctionType(code, names)()
            if inspect.iscoroutine(result):
                runner.run(result)
            assert capsys.readouterr().out == shown, example
