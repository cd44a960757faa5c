"""`make demo` tells its story to the end: what was recalled decides, and the second decision differs."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.docs.shell import make_environment
from tools.paths import ROOT

pytestmark = pytest.mark.workerd


def test_make_demo_approves_the_first_mail_and_escalates_the_second() -> None:
    done = subprocess.run(
        ["make", "demo"], cwd=ROOT, env=make_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^   stored  ", done.stdout, re.MULTILINE)) == 10
    decided = re.findall(r"^   decided  .*?\b(APPROVE|ESCALATE)\b", done.stdout, re.MULTILINE)
    assert decided == ["APPROVE", "ESCALATE"]
    asked = '"refund history for sara@example.com"'
    assert done.stdout.count(f'refund_decision calls recall_memory {{"query": {asked}') == 2
    first_found = re.findall(r"recall_memory .*\n\s+recalled  score [\d.]+  (.*)", done.stdout)
    assert len(first_found) == 2
    assert all("sara@example.com" in memory for memory in first_found)
    assert re.search(r"In its context were [1-9]\d* episodes", done.stdout)
