"""What is uploaded, by package: of the folder that `wrangler deploy --dry-run` writes."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.report import markdown
from tools.offline_runtime import environment
from tools.paths import CACHE, NODE_BIN, PRODUCTION_CONFIG, ROOT


@dataclass(frozen=True, slots=True)
class Uploaded:
    """One package of the upload. compressed: bytes of all its files in one gzip stream."""

    package: str
    files: int
    size: int
    compressed: int


def uploaded() -> list[Uploaded]:
    """Return what `wrangler deploy` would upload, the largest package first. Raises: SystemExit when wrangler fails."""
    folder = CACHE / "bench-start-upload"
    command = [
        str(NODE_BIN / "wrangler"),
        "deploy",
        "--dry-run",
        "--outdir",
        str(folder),
        "--config",
        str(PRODUCTION_CONFIG),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"wrangler deploy --dry-run failed:\n{done.stdout}\n{done.stderr}")
    return by_package(folder)


def by_package(folder: Path) -> list[Uploaded]:
    """Return the packages of a folder. Metadata of a package's distribution counts as one of its own."""
    found: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / "README.md"):
        parts = path.relative_to(folder).parts
        name = "Retain"
        if parts[0] == "python_modules" and len(parts) > 1:
            first = parts[2].partition(".")[0] if parts[1] == "__pycache__" else parts[1].removesuffix(".py")
            name = "metadata and licences" if ".dist-info" in first else first
            name = "the SDK (workers, asgi)" if name.startswith(("_workers_sdk", "workers", "asgi", "pyvenv")) else name
        found.setdefault(name, []).append(path)
    packages = []
    for name, paths in found.items():
        content = [path.read_bytes() for path in paths]
        packages.append(Uploaded(name, len(paths), sum(map(len, content)), len(gzip.compress(b"".join(content)))))
    return sorted(packages, key=lambda one: -one.size)


def table(packages: Sequence[Uploaded]) -> str:
    """Return the packages in Markdown."""
    every = Uploaded("all", *(sum(getattr(one, of) for one in packages) for of in ("files", "size", "compressed")))
    rows = [
        [one.package, str(one.files), f"{one.size / 1000:,.0f}", f"{one.compressed / 1000:,.0f}"]
        for one in (*packages, every)
    ]
    return markdown(["uploaded", "files", "KB", "KB, compressed"], rows)
