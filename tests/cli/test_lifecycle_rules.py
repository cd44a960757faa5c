"""The bucket's lifecycle rules, as the real wrangler takes and sends them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from retain.cli.lifecycle_rules import main
from retain.items.placement import MATRIX, lifecycle_rules
from tests.support.cloudflare_account import account
from tools.paths import NODE_BIN

pytestmark = pytest.mark.workerd


def test_wrangler_takes_the_printed_rules_and_sends_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    file = tmp_path / "rules.json"
    file.write_text(capsys.readouterr().out)
    command = ["r2", "bucket", "lifecycle", "set", "retain", "--file", str(file), "--force"]
    with account() as served:
        done = subprocess.run(
            [str(NODE_BIN / "wrangler"), *command],
            cwd=tmp_path,
            env=served.environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.sent == [("PUT", "/r2/buckets/retain/lifecycle", lifecycle_rules(MATRIX))]
