"""The generated parts are those of today's document, whole, and the surface fits them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.clients import PYTHON, TYPESCRIPT, generate
from tools.clients.synchronous import synchronous
from tools.openapi import operations
from tools.paths import ROOT

pytestmark = pytest.mark.usefixtures("generated")


def test_each_operation_of_the_document_is_generated() -> None:
    modules = {path.stem for path in PYTHON.glob("retain_client/api/api/*/*.py")} - {"__init__"}
    assert modules == operations().keys()
    schema = (TYPESCRIPT / "src" / "schema.ts").read_text()
    assert set(re.findall(r"^    (\w+): \{$", schema.partition("export interface operations {")[2], re.MULTILINE)) == (
        operations().keys()
    )


def test_what_was_made_from_something_else_is_made_again_and_nothing_else() -> None:
    assert generate() == []
    changed = PYTHON / "retain_client" / "synchronous"
    noted = ROOT / ".cache" / "clients" / "synchronous"
    noted.write_text("the digest of another source")
    assert generate() == [changed]
    assert generate() == []


def test_the_types_of_the_python_client_fit_the_document() -> None:
    checked = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]
    done = subprocess.run(checked, cwd=PYTHON, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_synchronous_client_waits_for_nothing() -> None:
    text = synchronous("async def f() -> AsyncIterator[int]:\n    async for x in await AsyncRuns(h).aclose(): ...\n")
    assert text == "def f() -> Iterator[int]:\n    for x in Runs(h).close(): ...\n"
    for path in sorted(Path(PYTHON / "retain_client" / "synchronous").glob("*.py")):
        assert not re.search(r"\b(async|await|Async\w+|Awaitable|asyncio\w*)\b", path.read_text()), path.name
