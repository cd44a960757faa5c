"""Vendor the Worker's packages into `python_modules/`, as `pywrangler sync` does, but only from PyPI.

pip picks the wheels for Pyodide's platform by the tags below and checks them against `locks/worker.txt`; an empty
`pyvenv.cfg` marks the folder as pywrangler would.
Source: https://developers.cloudflare.com/workers/languages/python/packages/
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys

from tools.paths import ROOT

LOCK = ROOT / "locks" / "worker.txt"
TARGET = ROOT / "python_modules"

_PLATFORM = [
    "--platform=pyemscripten_2026_0_wasm32",
    "--python-version=3.14",
    "--implementation=cp",
    "--abi=cp314",
    "--abi=none",
    "--only-binary=:all:",
]
# Not needed at run time, and the upload is limited: type stubs, caches, console scripts. Licences stay: whoever passes the
# packages on, as an upload does, passes them on as well.
_WASTE = ("__pycache__", "bin", "*.pyi")


def vendor() -> bool:
    """Install what the lock names unless it is already installed; return whether anything was done."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    marker = TARGET / "pyvenv.cfg"
    stamp = TARGET / ".lock-sha256"
    if marker.exists() and stamp.exists() and stamp.read_text() == digest:
        return False
    fresh = TARGET.with_name("python_modules.partial")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command += ["--no-deps", "--require-hashes", f"--target={fresh}", *_PLATFORM, f"--requirement={LOCK}"]
    subprocess.run(command, check=True)
    for pattern in _WASTE:
        for path in fresh.rglob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (fresh / "pyvenv.cfg").touch()
    (fresh / ".lock-sha256").write_text(digest)
    shutil.rmtree(TARGET, ignore_errors=True)
    fresh.rename(TARGET)
    return True


if __name__ == "__main__":
    print("vendored" if vendor() else "up to date")
