"""Paths of a checkout, and the text of its files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build"
CACHE = ROOT / ".cache"
NODE_BIN = ROOT / "node_modules" / ".bin"
PRODUCTION_CONFIG = ROOT / "wrangler.toml"
LOCAL_CONFIG = ROOT / "wrangler.local.json"
DEVELOPMENT_VARIABLES = ROOT / ".dev.vars"
"""Secrets, and variables that replace those of the local configuration. Source: https://developers.cloudflare.com/workers/configuration/secrets/"""
STAND_IN_CONFIG = ROOT / "vectorize" / "wrangler.toml"
AGENT_MEMORY_CONFIG = ROOT / "agent_memory" / "wrangler.toml"


def text_of(path: Path, place: str) -> str:
    """Return the text of a file. place: what it is called in the message. Raises: SystemExit when it is not UTF-8."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise SystemExit(f"{place}: it is not UTF-8, at byte {error.start}: save it in that encoding") from error


def project_files(root: Path = ROOT) -> list[Path]:
    """Return the files that are, or are about to be, under version control, sorted. An archive has all but ignored ones."""
    listing = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(["git", *listing], cwd=root, capture_output=True, check=False)
    if listed.returncode != 0:
        with TemporaryDirectory(prefix="retain-git-") as folder:
            git = ["git", f"--git-dir={folder}", f"--work-tree={root}"]
            subprocess.run([*git, "init", "--quiet"], cwd=root, check=True)
            listed = subprocess.run([*git, *listing], cwd=root, capture_output=True, check=True)
    paths = {root / name for name in listed.stdout.decode().split("\0") if name}
    return sorted(path for path in paths if path.is_file())
