"""The operator's console, bundled from `console/` by esbuild, which wrangler brings."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.paths import NODE_BIN, ROOT

CONSOLE = ROOT / "console"
_STATIC = {"console.html": "index.html", "console/console.css": "console.css"}


def console_files() -> dict[str, bytes]:
    """Return the console's files by their paths. Raises: SystemExit when it cannot be bundled."""
    static = {path: (CONSOLE / name).read_bytes() for path, name in _STATIC.items()}
    return {**static, "console/console.js": _bundled(CONSOLE / "src" / "main.tsx")}


def _bundled(entry: Path) -> bytes:
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", f"--tsconfig={CONSOLE / 'tsconfig.json'}"]
    done = subprocess.run([NODE_BIN / "esbuild", entry, *options], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"the console is not bundled: {done.stderr.decode()}")
    return done.stdout
