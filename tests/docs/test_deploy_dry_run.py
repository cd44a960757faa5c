"""`make deploy-dry-run` builds the production upload: what it holds, and whether Cloudflare would take it."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.docs.shell import make_environment
from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.stage import read_config, wanted_files

pytestmark = pytest.mark.workerd

MAX_GZIP_KIB = 3 * 1024
"""Largest Worker of the free plan, compressed. Source: https://developers.cloudflare.com/workers/platform/limits/#worker-size"""
_MODULE = re.compile(r"^│ (\S+)\s+│ (?:python|buffer|esm)\s+│", re.MULTILINE)


@pytest.fixture(scope="module")
def printed() -> str:
    """What the command prints."""
    done = subprocess.run(
        ["make", "deploy-dry-run"], cwd=ROOT, env=make_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_size_is_printed_and_within_the_free_plan(printed: str) -> None:
    size = re.search(r"Total Upload: [\d.]+ KiB / gzip: ([\d.]+) KiB", printed)
    assert size is not None
    assert float(size[1]) < MAX_GZIP_KIB


def test_the_production_configuration_gives_no_warning(printed: str) -> None:
    assert "warning" not in printed.lower()


def test_the_upload_holds_what_was_staged_and_nothing_of_the_host(printed: str) -> None:
    uploaded = set(_MODULE.findall(printed))
    # The entry is not among the "additional modules" that wrangler lists.
    assert uploaded | {"entry.py"} == set(wanted_files(read_config(PRODUCTION_CONFIG)))
    assert not [name for name in uploaded if name.startswith("retain/host") or name.endswith(".bin")]
