"""`make bench QUICK=1`: each benchmark of the harness ends without an error, on the real workerd, and has figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.run import SIDE_BY_SIDE
from retain.json_text import read_own_json
from tools.paths import ROOT

pytestmark = pytest.mark.workerd


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_the_quick_mode_of_a_benchmark_ends_with_figures_and_a_plot(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--only", name, "--into", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    written = read_own_json((tmp_path / f"{name}.json").read_text())
    assert isinstance(written, dict)
    assert "Retain" in {part.strip(":,") for one in written["figures"] for part in one["name"].split()}
    assert all(one["operations"] > 0 and one["median_ms"] > 0 for one in written["figures"])
    assert "<svg" in (tmp_path / f"{name}.svg").read_text()
