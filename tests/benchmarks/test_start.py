"""The benchmark of the start: what counts as which package, in the upload and among imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.start.imports import MAIN, Import, tables
from benchmarks.start.upload import by_package, table


def test_the_files_of_an_upload_are_counted_by_package(tmp_path: Path) -> None:
    content = {
        "entry.py": "x" * 10,
        "retain/http.py": "x" * 20,
        "README.md": "wrangler's own, which is not uploaded",
        "python_modules/pydantic/main.py": "x" * 500,
        "python_modules/pydantic-2.dist-info/METADATA": "x" * 7,
        "python_modules/workers/rpc.py": "x" * 3,
        "python_modules/typing_extensions.py": "x" * 5,
        "python_modules/__pycache__/typing_extensions.cpython-314.pyc": "x",
    }
    for name, text in content.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    packages = by_package(tmp_path)
    assert [(one.package, one.files, one.size) for one in packages] == [
        ("pydantic", 1, 500),
        ("Retain", 2, 30),
        ("metadata and licences", 1, 7),
        ("typing_extensions", 2, 6),
        ("the SDK (workers, asgi)", 1, 3),
    ]
    assert packages[0].compressed < 100, "compressed"
    assert "| all | 7 |" in table(packages)


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("retain.http", "Retain"),
        (MAIN, "Retain"),
        ("pydantic.main", "pydantic"),
        ("typing_extensions", "what pydantic needs"),
        ("zipfile", "the standard library"),
    ],
)
def test_a_module_counts_to_the_package_that_needs_it(module: str, package: str) -> None:
    assert Import(module, 1.0, 1.0, with_main=False).package == package


def test_the_most_expensive_imports_come_first() -> None:
    shown = tables([Import(f"retain.m{ms}", ms, ms, with_main=False) for ms in (1.0, 9.0, 5.0)], most=2)
    rows = [line for line in shown.splitlines() if "`retain" in line]
    assert [row.split("`")[1] for row in rows] == ["retain.m9.0", "retain.m5.0"]
