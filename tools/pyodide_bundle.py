"""Build workerd's Pyodide bundle from the npm package `pyodide`, for machines that cannot reach Cloudflare's CDN.

workerd looks for `pyodide_dev.capnp.bin` in its bundle directory when a Worker sets the compatibility flag
`python_workers_development`. The bundle is one Cap'n Proto message that holds Pyodide's JavaScript glue, its
WebAssembly and the standard library. The glue is patched where it uses what only a browser has; a patch that
finds nothing to replace stops the build with its name.

Source: https://github.com/cloudflare/workerd/tree/main/src/pyodide (schema `modules.capnp`, hooks
`builtin_wrappers.ts`).
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BUNDLE_NAME = "pyodide_dev.capnp.bin"
LIBRARY_NAME = "python_stdlib.zip"
"""What npm's `pyodide` calls the archive of the standard library."""
_SCHEMA_NAME = "bundle.capnp"

_SCHEMA = """
@0xbf5a2f3c9d1e4b77;
struct Bundle { modules @0 :List(Module); }
struct Module {
  name @0 :Text;
  union { src @1 :Data; wasm @4 :Data; data @5 :Data; json @6 :Text; }
  tsDeclaration @3 :Text;
  type @2 :ModuleType;
  compileCache @7 :Data;
}
enum ModuleType { bundle @0; builtin @1; internal @2; }
"""

_HOOKS = (
    "import { addEventListener, getRandomValues, location, monotonicDateNow, newWasmModule, patchedLoadLibData, "
    'wasmInstantiate } from "pyodide-internal:builtin_wrappers";\n'
)
_NO_EVAL = '(()=>{throw new Error("workerd forbids eval of strings")})()'


@dataclass(frozen=True)
class Patch:
    """One replacement in the glue.

    place: the name of what is patched, for the error when the patch no longer fits.
    pattern: regular expression that must match at least once.
    replacement: the replacement for `re.sub`.
    """

    place: str
    pattern: str
    replacement: str


_PATCHES = (
    Patch(
        "named export",
        r"export default _createPyodideModule;",
        "export default _createPyodideModule;export{_createPyodideModule};",
    ),
    Patch("module construction", r"new WebAssembly\.Module\(", "newWasmModule("),
    Patch("instantiation", r"WebAssembly\.instantiate\(", "wasmInstantiate("),
    Patch("clock", r"\bDate\.now\b", "monotonicDateNow"),
    Patch("randomness", r"\bcrypto\.getRandomValues\(", "getRandomValues(Module,"),
    Patch(
        "side modules",
        r"function loadLibData\(\)\{",
        "function loadLibData(){var patched=patchedLoadLibData(Module,libName,flags.rpath);"
        "return flags.loadAsync?Promise.resolve(patched):patched;",
    ),
    Patch("side modules' memory", r"\bgetMemory\(metadata\.", "Module.getMemoryPatched(Module,libName,metadata."),
    Patch("eval of functions", r"(?<![\w.])eval\(func\)", _NO_EVAL),
    Patch("eval of scripts", r"(?<![\w.])eval\(UTF8ToString\(ptr\)\)", _NO_EVAL),
    Patch("eval of downloads", r"(?<![\w.])eval\(data\)", _NO_EVAL),
)


def patch_glue(glue: str) -> str:
    """Return the glue with every patch applied.

    Raises:
        SystemExit: a patch found nothing to replace; the message names the patch.
    """
    for patch in _PATCHES:
        glue, count = re.subn(patch.pattern, patch.replacement.replace("\\", "\\\\"), glue)
        if count == 0:
            raise SystemExit(f"pyodide glue: no place for the patch '{patch.place}' (pattern {patch.pattern})")
    return _HOOKS + glue


def build(package: Path, library: Path, out_dir: Path) -> Path:
    """Write the bundle below `out_dir` and return its directory.

    package: an unpacked npm `pyodide`. library: the archive of the standard library. The directory's name is a hash of
    these files and this recipe, so a second call finds it and does nothing.
    """
    parts = {name: (package / name).read_bytes() for name in ("pyodide.asm.mjs", "pyodide.asm.wasm")}
    parts[LIBRARY_NAME] = library.read_bytes()
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name, content in parts.items():
        digest.update(name.encode() + len(content).to_bytes(8, "big") + content)
    target = out_dir / digest.hexdigest()[:16]
    if (target / BUNDLE_NAME).exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as own:  # another process may be building the same
        _write(Path(own), parts)
        for name in (_SCHEMA_NAME, BUNDLE_NAME):
            (Path(own) / name).replace(target / name)
    return target


def _write(folder: Path, parts: Mapping[str, bytes]) -> None:
    """Write the bundle of these parts and its schema into a folder."""
    import capnp

    schema_file = folder / _SCHEMA_NAME
    schema_file.write_text(_SCHEMA)
    schema = capnp.load(str(schema_file))
    message = schema.Bundle.new_message()
    modules = message.init("modules", 3)
    fields = (
        ("pyodideRuntime-internal:pyodide.asm", "src", patch_glue(parts["pyodide.asm.mjs"].decode()).encode()),
        ("pyodideRuntime-internal:pyodide.asm.wasm", "wasm", parts["pyodide.asm.wasm"]),
        (f"pyodideRuntime-internal:{LIBRARY_NAME}", "data", parts[LIBRARY_NAME]),
    )
    for module, (name, field, content) in zip(modules, fields, strict=True):
        module.name = name
        module.type = "internal"
        setattr(module, field, content)
    (folder / BUNDLE_NAME).write_bytes(message.to_bytes())


if __name__ == "__main__":
    package = Path(sys.argv[1])
    print(build(package, package / LIBRARY_NAME, Path(sys.argv[2])))
