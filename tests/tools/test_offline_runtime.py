from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tools import offline_runtime
from tools.offline_runtime import LOCAL_ENTRY, environment, prepare
from tools.paths import CACHE


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose workerd prints its arguments, one per line. Its folder's name has a space in it."""
    root = tmp_path / "a checkout"
    programs = root / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    workerd = programs / "workerd"
    workerd.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    workerd.chmod(0o755)
    bundle = root / ".cache" / "pyodide" / "0123"
    bundle.mkdir(parents=True)
    monkeypatch.setattr(offline_runtime, "NODE_BIN", programs)
    monkeypatch.setattr(offline_runtime, "with_bytecode", lambda archive, kept: archive)
    monkeypatch.setattr(offline_runtime, "build", lambda package, library, out: bundle)
    return root


def test_the_wrapper_adds_the_bundle_s_folder_after_the_command_and_passes_the_rest_on(installed: Path) -> None:
    wrapper = prepare()
    done = subprocess.run(
        [str(wrapper), "serve", "--experimental", "two words", "-"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "serve",
        f"--pyodide-bundle-disk-cache-dir={installed / '.cache' / 'pyodide' / '0123'}",
        "--experimental",
        "two words",
        "-",
    ]


def test_the_wrapper_becomes_workerd_and_exits_as_it_does(installed: Path) -> None:
    (installed / "node_modules" / ".bin" / "workerd").write_text("#!/bin/sh\nexit 7\n")
    assert subprocess.run([str(prepare()), "serve"], check=False).returncode == 7


def test_the_wrapper_is_written_once_and_again_when_workerd_moves(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = prepare()
    before = wrapper.stat().st_mtime_ns
    assert prepare() == wrapper
    assert wrapper.stat().st_mtime_ns == before
    elsewhere = installed / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "workerd").write_text("#!/bin/sh\n")
    monkeypatch.setattr(offline_runtime, "NODE_BIN", elsewhere)
    assert str(elsewhere / "workerd") in prepare().read_text()
    assert os.access(wrapper, os.X_OK)
    assert {path.name for path in wrapper.parent.iterdir()} == {"workerd"}


def test_wrangler_s_environment_puts_this_checkout_s_programs_first(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    made = environment()
    assert made["PATH"] == f"{installed / 'node_modules' / '.bin'}{os.pathsep}/usr/bin"
    assert made["MINIFLARE_WORKERD_PATH"] == str(prepare())
    assert made["WRANGLER_SEND_METRICS"] == "false"


def test_the_correction_of_the_entry_is_loaded_after_what_somebody_else_loads(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--no-warnings")
    assert environment()["NODE_OPTIONS"] == f'--no-warnings --require "{LOCAL_ENTRY}"'
    monkeypatch.delenv("NODE_OPTIONS")
    assert environment()["NODE_OPTIONS"] == f'--require "{LOCAL_ENTRY}"'


def test_the_entry_is_loaded_from_a_folder_of_any_name(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = installed / 'Ünser "Büro" 東京' / "entry.cjs"
    entry.parent.mkdir()
    entry.write_text("console.log('loaded')")
    monkeypatch.setattr(offline_runtime, "LOCAL_ENTRY", entry)
    done = subprocess.run(["node", "-e", ""], env=environment(), capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("loaded\n", 0), done.stderr


@pytest.mark.parametrize(
    ("made", "writable", "moved"),
    [(".config", True, False), (".config", False, True), (".config/.wrangler", False, False)],
    ids=["the home is the user's", "it is not", "it has wrangler's folder, with a login that is only read"],
)
def test_wrangler_keeps_its_notes_in_the_checkout_only_where_it_may_not_make_its_folder(
    installed: Path, monkeypatch: pytest.MonkeyPatch, made: str, writable: bool, moved: bool
) -> None:
    home = installed / "home"
    (home / made).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(os, "access", lambda *_: writable)
    assert environment().get("XDG_CONFIG_HOME") == (str(CACHE / "config") if moved else None)


def test_a_home_into_which_the_user_may_not_look_is_not_theirs(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, stat = installed / "home", os.stat
    home.mkdir()

    def guarded(path: str | Path, **options: bool) -> os.stat_result:
        if home in Path(path).parents:
            raise PermissionError(path)
        return stat(path, **options)

    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "stat", guarded)
    assert environment()["XDG_CONFIG_HOME"] == str(CACHE / "config")


def _read_with_the_correction(folder: Path, content: str) -> subprocess.CompletedProcess[str]:
    entry = folder / "miniflare" / "dist" / "src" / "workers" / "core" / "entry.worker.js"
    entry.parent.mkdir(parents=True)
    entry.write_text(content)
    program = f"console.log(require('fs').readFileSync({json.dumps(str(entry))}, 'utf8'))"
    command = ["node", "--require", str(LOCAL_ENTRY), "-e", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_entry_that_the_correction_does_not_fit_is_not_served(tmp_path: Path) -> None:
    done = _read_with_the_correction(tmp_path, "export default {}")
    assert done.returncode != 0
    assert "does not fit this version of Miniflare" in done.stderr


def test_the_correction_comes_first_in_what_reads_a_request(tmp_path: Path) -> None:
    reads = "function getUserRequest(request, env, clientIp) {\n"
    done = _read_with_the_correction(tmp_path, f"{reads}  return request;\n}}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{reads}  if (request.headers.get(CoreHeaders.PROXY_SHARED_SECRET) === null)")
    assert "  return request;\n}" in done.stdout
