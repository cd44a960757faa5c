"""The modules of a Worker, as workerd's own configuration names them."""

from __future__ import annotations

from pathlib import Path

from tools.paths import ROOT

PACKAGES = ROOT / "python_modules"
_KINDS = {".js": "esModule", ".mjs": "esModule", ".py": "pythonModule", ".wasm": "wasm"}


def python_packages() -> dict[str, bytes]:
    """Return the vendored packages of Python Workers, by module name."""
    return {
        f"python_modules/{path.relative_to(PACKAGES).as_posix()}": path.read_bytes()
        for path in sorted(PACKAGES.rglob("*"))
        if path.is_file()
    }


def module_kind(path: str) -> str:
    """Return the kind of a module. The files of vendored packages are data, even if they are Python.

    Source: https://github.com/cloudflare/workerd/blob/main/src/workerd/server/workerd.capnp (`Worker.Module`)
    """
    kind = _KINDS.get(Path(path).suffix, "data")
    return "data" if path.startswith("python_modules/") and kind != "esModule" else kind
