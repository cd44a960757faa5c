from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.paths import ROOT
from tools.pyodide_bundle import BUNDLE_NAME, LIBRARY_NAME, build, patch_glue

# One line for each target of a patch, as the glue writes it.
PLACES = {
    "named export": "export default _createPyodideModule;",
    "module construction": "var module=new WebAssembly.Module(bytes);",
    "instantiation": "return WebAssembly.instantiate(binary,imports);",
    "clock": "var _emscripten_date_now=()=>Date.now();",
    "randomness": "var fill=view=>crypto.getRandomValues(view);",
    "side modules": "function loadLibData(){return readAsync(libName)}",
    "side modules' memory": "var base=getMemory(metadata.memorySize+align);",
    "eval of functions": "func=eval(func);",
    "eval of scripts": "var result=eval(UTF8ToString(ptr));",
    "eval of downloads": "eval(data);",
}
GLUE = "\n".join(PLACES.values())


@pytest.mark.parametrize("place", PLACES)
def test_a_patch_whose_target_is_missing_fails_and_names_it(place: str) -> None:
    glue = "\n".join(line for name, line in PLACES.items() if name != place)
    with pytest.raises(SystemExit, match=f"'{place}'"):
        patch_glue(glue)


def test_the_patched_glue_uses_workerd_s_hooks_instead_of_the_browser_s() -> None:
    hooks, *lines = patch_glue(GLUE).splitlines()
    assert hooks.startswith("import {")
    assert hooks.endswith('from "pyodide-internal:builtin_wrappers";')
    patched = dict(zip(PLACES, lines, strict=True))
    assert patched["named export"].endswith("export{_createPyodideModule};")
    assert patched["module construction"] == "var module=newWasmModule(bytes);"
    assert patched["instantiation"] == "return wasmInstantiate(binary,imports);"
    assert patched["clock"] == "var _emscripten_date_now=()=>monotonicDateNow();"
    assert patched["randomness"] == "var fill=view=>getRandomValues(Module,view);"
    assert "patchedLoadLibData(Module,libName,flags.rpath)" in patched["side modules"]
    assert patched["side modules' memory"] == (
        "var base=Module.getMemoryPatched(Module,libName,metadata.memorySize+align);"
    )
    for name in ("functions", "scripts", "downloads"):
        assert "workerd forbids eval" in patched[f"eval of {name}"]
        assert "eval(" not in patched[f"eval of {name}"]


def test_every_occurrence_is_patched() -> None:
    patched = patch_glue(f"{GLUE}\nlater=Date.now();a=new WebAssembly.Module(a);b=new WebAssembly.Module(b);")
    assert patched.endswith("later=monotonicDateNow();a=newWasmModule(a);b=newWasmModule(b);")


@pytest.mark.skipif(not (ROOT / "node_modules" / "pyodide").exists(), reason="npm packages are not installed")
def test_the_installed_glue_has_the_target_of_every_patch() -> None:
    glue = (ROOT / "node_modules" / "pyodide" / "pyodide.asm.mjs").read_text()
    patched = patch_glue(glue)
    assert "WebAssembly.instantiate(" not in patched
    assert "Date.now" not in patched


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the three files that a bundle is made from."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    (folder / "pyodide.asm.mjs").write_text(GLUE)
    (folder / "pyodide.asm.wasm").write_bytes(b"\0asm wasm")
    (folder / "python_stdlib.zip").write_bytes(b"PK zip")
    return folder


def built(package: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build in a separate process: a process can load the bundle's schema only once."""
    command = [sys.executable, "-m", "tools.pyodide_bundle", str(package), str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


_READ = """
import json, pathlib, sys, capnp
schema = capnp.load(sys.argv[1])
with schema.Bundle.from_bytes(pathlib.Path(sys.argv[2]).read_bytes()) as bundle:
    found = [(module, module.which()) for module in bundle.modules]
    print(json.dumps([[m.name, str(w), str(m.type), bytes(getattr(m, str(w))).decode()] for m, w in found]))
"""


def test_the_bundle_holds_the_three_modules_under_workerd_s_names(package: Path, tmp_path: Path) -> None:
    made = Path(built(package, tmp_path / "out").stdout.strip())
    # In a separate process: this one may have built the bundle for a server of the tests.
    command = [sys.executable, "-c", _READ, str(made / "bundle.capnp"), str(made / BUNDLE_NAME)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["pyodideRuntime-internal:pyodide.asm", "src", "internal", patch_glue(GLUE)],
        ["pyodideRuntime-internal:pyodide.asm.wasm", "wasm", "internal", "\0asm wasm"],
        ["pyodideRuntime-internal:python_stdlib.zip", "data", "internal", "PK zip"],
    ]


def test_processes_that_build_the_same_bundle_at_once_do_not_disturb_each_other(package: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _: built(package, tmp_path / "out"), range(6)))
    assert {(one.returncode, one.stderr) for one in done} == {(0, "")}
    [made] = {one.stdout.strip() for one in done}
    assert sorted(path.name for path in Path(made).iterdir()) == ["bundle.capnp", BUNDLE_NAME]


def test_a_bundle_is_built_once_for_equal_content_and_again_for_other_content(package: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = Path(built(package, out).stdout.strip())
    assert first.parent == out
    before = (first / BUNDLE_NAME).stat().st_mtime_ns
    assert build(package, package / LIBRARY_NAME, out) == first
    assert (first / BUNDLE_NAME).stat().st_mtime_ns == before
    (package / "python_stdlib.zip").write_bytes(b"PK another")
    second = Path(built(package, out).stdout.strip())
    assert second != first
    assert {path.name for path in out.iterdir()} == {first.name, second.name}


def test_a_build_that_fails_says_why_and_leaves_no_bundle(package: Path, tmp_path: Path) -> None:
    (package / "pyodide.asm.mjs").write_text("export default 1;")
    failed = built(package, tmp_path / "out")
    assert failed.returncode == 1
    assert "no place for the patch 'named export'" in failed.stderr
    assert list((tmp_path / "out").rglob(f"{BUNDLE_NAME}*")) == []
