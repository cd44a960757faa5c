"""What modules compile as they are imported: it is recorded before, and an isolate takes it instead of compiling."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_worker import answer_of
from tools import recorded_imports
from tools.bytecode import MAIN, PARTIAL, with_bytecode
from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.recorded_imports import LATER, READER, with_recorded
from tools.recorded_imports import MAIN as OF_MAIN
from tools.stage import read_config, wanted_files

_OWN = '''
import re
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from typing import ClassVar


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A point."""

    x: int
    y: int = 2
    seen: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclass
class Child:
    """With what is not a field of the instance, and a base class."""

    kinds: ClassVar[int] = 3
    given: InitVar[int]
    _: KW_ONLY
    total: int = 0

    def __post_init__(self, given):
        self.total = given * 2


@dataclass(unsafe_hash=True)
class Grandchild(Child):
    name: str = "n"


PATTERN = re.compile(r"(?P<word>\\w+)-(\\d+)(?=[^a-f]|$)|x{2,3}?", re.IGNORECASE)
BYTES = re.compile(b"[a-z]+(?i:K)")


def seen():
    point = Point(1)
    try:
        point.x = 2
        frozen = ""
    except Exception as error:
        frozen = repr(error)
    matched = PATTERN.search("some AB-12")
    return [
        repr(point), frozen, point == Point(1, 2, ["other"]), Point(0, 9) < point, hash(point) == hash(Point(1)),
        repr(replace(point, y=5)), Point.__match_args__, Point.__slots__, Point.__init__.__annotations__,
        Point.__init__.__qualname__, Point.__eq__.__module__, repr(Child(4, total=1)), Child.__hash__,
        repr(Grandchild(2, name="m")), hash(Grandchild(2)) == hash(Grandchild(2)), Grandchild.__doc__,
        PATTERN.flags, PATTERN.groups, dict(PATTERN.groupindex), matched.groups(), matched.lastgroup, PATTERN.pattern,
        PATTERN.findall("xxx xx a-1g"), BYTES.fullmatch(b"abk") is not None, BYTES.flags,
        BYTES == re.compile(b"[a-z]+(?i:K)"),
    ]
'''
_TAKING = """
import json, sys
import precompiled
precompiled.install()
precompiled.expect_more()
if sys.argv[1] == "taken":
    def refused(*_):
        raise AssertionError("compiled")
    precompiled.exec = refused
    precompiled.re._compiler._code = refused
import own
print(own.seen())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module, the reader, and what the module was recorded to compile by this interpreter."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own.py").write_text(_OWN)
    (folder / "broken.py").write_text("raise SystemExit('not here')\n")
    (folder / READER).write_bytes((ROOT / "workers" / READER).read_bytes())
    files = folder / OF_MAIN, folder / LATER
    program = "import sys; from tools.import_recorder import record; record(*sys.argv[1:])"
    done = _python(["-c", program, str(folder), str(tmp_path / "none"), *map(str, files)], ROOT)
    assert done == "broken: SystemExit('not here')\n", "a module that cannot be imported is named, and left out"
    return folder


def _python(arguments: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_recorded_is_taken_and_behaves_as_what_is_compiled(folder: Path) -> None:
    taken = _python(["-c", _TAKING, "taken"], folder)
    (folder / OF_MAIN).unlink()
    assert taken == _python(["-c", _TAKING, "compiled"], folder)
    assert "FrozenInstanceError" in taken


@pytest.mark.parametrize("changed", [OF_MAIN, LATER])
def test_what_another_version_of_python_recorded_is_not_taken(folder: Path, changed: str) -> None:
    recorded = (folder / changed).read_bytes()
    (folder / changed).write_bytes(bytes([recorded[0] ^ 1]) + b"not to be read")
    assert "Point(x=1, y=2)" in _python(["-c", _TAKING, "compiled"], folder)


def test_a_source_that_was_not_recorded_is_compiled(folder: Path) -> None:
    before = _python(["-c", _TAKING, "taken"], folder)
    changed = _OWN.replace("    y: int = 2\n", "    y: int = 2\n    z: int = 7\n").replace("(?P<word>", "(?P<term>")
    (folder / "own.py").write_text(changed)
    after = _python(["-c", _TAKING, "compiled"], folder)
    assert ("Point(x=1, y=2, z=7)" in after, "{'term': 1}" in after) == (True, True)
    assert "z=7" not in before


def test_what_the_main_module_imports_is_in_a_file_of_its_own_and_the_other_is_read_when_it_is_needed(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "entry.py").write_text("import own\n")
    (folder / "area.py").write_text(
        "import re\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    area: int\n"
        "AREA = re.compile('of an area')\n"
    )
    (folder / OF_MAIN).unlink()
    program = "import sys; from tools.import_recorder import record; record(*sys.argv[1:])"
    _python(["-c", program, str(folder), str(tmp_path), str(folder / OF_MAIN), str(folder / LATER)], ROOT)
    later = (folder / LATER).read_bytes()
    assert b"of an area" in later
    assert b"of an area" not in (folder / OF_MAIN).read_bytes()
    assert b"word" not in later, "what is in the first is not in the second"
    (folder / LATER).write_bytes(later[:4] + b"it would be an error to read this")
    assert "Point(x=1, y=2)" in _python(["-c", _TAKING, "taken"], folder)
    (folder / LATER).write_bytes(later)
    taking = _TAKING.replace("import own", "import entry, area").replace("own.seen()", "area.AREA.pattern")
    assert _python(["-c", taking, "taken"], folder) == "of an area\n"


def test_what_a_module_compiles_when_it_is_used_is_recorded_if_it_says_so(folder: Path, tmp_path: Path) -> None:
    (folder / "used.py").write_text(
        "import re\ndef compile_ahead():\n    re.compile('ahead')\ndef other():\n    re.compile('when used')\n"
    )
    program = "import sys; from tools.import_recorder import record; record(*sys.argv[1:])"
    _python(["-c", program, str(folder), str(tmp_path), str(folder / OF_MAIN), str(folder / LATER)], ROOT)
    later = (folder / LATER).read_bytes()
    assert (b"ahead" in later, b"when used" in later) == (True, False)


@pytest.fixture
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a checkout in which nothing was recorded yet."""
    monkeypatch.setattr(recorded_imports, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


def test_a_worker_that_does_not_take_it_is_not_imported(nothing_kept: Path) -> None:
    files = {MAIN: b"raise SystemExit\n"}
    assert with_recorded(files, compiled=True) == files
    assert not nothing_kept.exists()


def test_a_local_server_takes_what_was_recorded_last(nothing_kept: Path) -> None:
    reader = (ROOT / "workers" / READER).read_bytes()
    first = {READER: reader, "own.py": b"import re\nA = re.compile('first')\n"}
    assert with_recorded(first, compiled=False) == first, "nothing was recorded yet"
    recorded = with_recorded(first, compiled=True)
    assert recorded.keys() - first.keys() == {OF_MAIN, LATER}
    assert b"first" in recorded[LATER]
    (nothing_kept / f"another{PARTIAL}").write_bytes(b"another process is writing it")
    changed = {**first, "own.py": b"import re\nA = re.compile('second')\n"}
    assert with_recorded(changed, compiled=False)[LATER] == recorded[LATER]
    assert b"second" in with_recorded(changed, compiled=True)[LATER]
    assert b"second" in with_recorded(first, compiled=False)[LATER], "which is the last"
    assert with_recorded(first, compiled=True)[LATER] == recorded[LATER], "what is deployed is of its own modules"


_COUNTING = b"""
import precompiled
precompiled.install()
precompiled.expect_more()
import builtins
import importlib
import re
from workers import Response, WorkerEntrypoint

missed = []

def executed(source, module, defined):
    missed.append(f"dataclass of {module['__name__']}")
    builtins.exec(source, module, defined)

def coded(parsed, flags, code_of=re._compiler._code):
    missed.append(f"pattern {parsed.state.str[:60]!r}")
    return code_of(parsed, flags)

precompiled.exec, re._compiler._code = executed, coded

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        for name in (await request.text()).split():
            getattr(importlib.import_module(name), "compile_ahead", list)()
        return Response("\\n".join(missed))
"""


@pytest.mark.workerd
def test_no_module_of_retain_compiles_a_dataclass_or_a_pattern_in_workerd_nor_the_rules_of_english() -> None:
    files = with_recorded(with_bytecode(wanted_files(read_config(PRODUCTION_CONFIG)), compiled=True), compiled=True)
    own = files.pop(MAIN)
    files = {MAIN: _COUNTING, "entry_of_retain.py": own, **files}
    names = [name.removesuffix(".py").replace("/", ".") for name in files if name.endswith(".py") and name != MAIN]
    # A run begins with a class, which is what the second file is read for.
    asked = ["retain.agents.instance", *(name.removesuffix(".__init__") for name in names)]
    assert answer_of("recorded-imports", files, "\n".join(asked)) == (200, "")
