"""`make deploy-dry-run` builds the production upload: what it holds, and whether Cloudflare would take it."""

from __future__ import annotations

import gzip
import re
import subprocess

import pytest

from tests.docs.shell import make_environment
from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.stage import read_config, wanted_files, with_compiled
from tools.worker_modules import python_packages

pytestmark = pytest.mark.workerd

MAX_GZIP_KIB, MAX_FREE_GZIP_KIB = 10 * 1024, 3 * 1024
"""Largest Worker, and that of the free plan, compressed. Source: https://developers.cloudflare.com/workers/platform/limits/#worker-size"""
TABLE = ROOT / "models" / "static-minilm-256-i8.bin"
"""The local embedding table for English."""
_MODULE = re.compile(r"^│ (\S+)\s+│ (?:python|buffer|esm)\s+│", re.MULTILINE)


@pytest.fixture(scope="module")
def printed() -> str:
    """What the command prints."""
    done = subprocess.run(
        ["make", "deploy-dry-run"], cwd=ROOT, env=make_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_size_is_printed_and_permitted(printed: str) -> None:
    size = re.search(r"Total Upload: [\d.]+ KiB / gzip: ([\d.]+) KiB", printed)
    assert size is not None
    assert float(size[1]) < MAX_GZIP_KIB


def test_without_bytecode_the_free_plan_permits_it_and_a_local_table_has_room() -> None:
    sources = list(wanted_files(read_config(PRODUCTION_CONFIG)).values())
    packages = [content for name, content in python_packages().items() if not name.endswith(".pyc")]
    size_kib = len(gzip.compress(b"".join(sources + packages))) / 1024
    assert size_kib < MAX_FREE_GZIP_KIB
    assert size_kib + len(gzip.compress(TABLE.read_bytes())) / 1024 < MAX_GZIP_KIB


def test_the_production_configuration_gives_no_warning(printed: str) -> None:
    assert "warning" not in printed.lower()


def test_the_upload_holds_what_was_staged_and_nothing_of_the_host(printed: str) -> None:
    uploaded = set(_MODULE.findall(printed))
    # The entry is not among the "additional modules" that wrangler lists.
    staged = with_compiled(wanted_files(read_config(PRODUCTION_CONFIG)), compiled=True)
    assert uploaded | {"entry.py"} == set(staged)
    assert not [name for name in uploaded if name.startswith("retain/host") or name.endswith(".bin")]
