"""What modules compile as they are imported: it is recorded before, and an isolate takes it instead of compiling."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.retain_worker import configuration
from benchmarks.harness.services import worker
from benchmarks.harness.workerd import running
from tools import recorded_imports
from tools.bytecode import MAIN, PARTIAL, with_bytecode
from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.recorded_imports import FILE, READER, with_recorded
from tools.stage import read_config, wanted_files
from tools.worker_modules import python_packages

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
    program = "import sys; from tools.import_recorder import record; record(*sys.argv[1:])"
    done = _python(["-c", program, str(folder), str(tmp_path / "none"), str(folder / FILE)], ROOT)
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
    (folder / FILE).unlink()
    assert taken == _python(["-c", _TAKING, "compiled"], folder)
    assert "FrozenInstanceError" in taken


def test_what_another_version_of_python_recorded_is_not_taken(folder: Path) -> None:
    recorded = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(bytes([recorded[0] ^ 1]) + b"not to be read")
    assert "Point(x=1, y=2)" in _python(["-c", _TAKING, "compiled"], folder)


def test_a_source_that_was_not_recorded_is_compiled(folder: Path) -> None:
    before = _python(["-c", _TAKING, "taken"], folder)
    changed = _OWN.replace("    y: int = 2\n", "    y: int = 2\n    z: int = 7\n").replace("(?P<word>", "(?P<term>")
    (folder / "own.py").write_text(changed)
    after = _python(["-c", _TAKING, "compiled"], folder)
    assert ("Point(x=1, y=2, z=7)" in after, "{'term': 1}" in after) == (True, True)
    assert "z=7" not in before


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
    assert recorded.keys() - first.keys() == {FILE}
    assert b"first" in recorded[FILE]
    (nothing_kept / f"another{PARTIAL}").write_bytes(b"another process is writing it")
    changed = {**first, "own.py": b"import re\nA = re.compile('second')\n"}
    assert with_recorded(changed, compiled=False)[FILE] == recorded[FILE]
    assert b"second" in with_recorded(changed, compiled=True)[FILE]
    assert b"second" in with_recorded(first, compiled=False)[FILE], "which is the last"
    assert with_recorded(first, compiled=True)[FILE] == recorded[FILE], "what is deployed is of its own modules"


_COUNTING = b"""
import precompiled
precompiled.install()
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
            importlib.import_module(name)
        return Response("\\n".join(missed))
"""


@pytest.mark.workerd
def test_no_module_of_retain_compiles_a_dataclass_or_a_pattern_in_workerd() -> None:
    config = configuration()
    files = with_recorded(with_bytecode(wanted_files(read_config(PRODUCTION_CONFIG)), compiled=True), compiled=True)
    own = files.pop(MAIN)
    files = {MAIN: _COUNTING, "entry_of_retain.py": own, **files}
    names = [name.removesuffix(".py").replace("/", ".") for name in files if name.endswith(".py") and name != MAIN]
    date, flags = config["compatibility_date"], config["compatibility_flags"]
    service = worker("recorded", files, shared=python_packages(), date=date, flags=flags)
    with running("test-recorded-imports", [service]) as workerd:
        connection = http.client.HTTPConnection("127.0.0.1", workerd.ports["recorded"], timeout=100)
        connection.request("POST", "/", "\n".join(name.removesuffix(".__init__") for name in names))
        answer = connection.getresponse()
        missed = answer.read().decode()
        connection.close()
    assert (answer.status, missed) == (200, "")
