"""`make demo` tells its story to the end: what was recalled decides, and each of the three decisions is another one."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.docs.shell import make_environment
from tools.paths import ROOT

pytestmark = pytest.mark.workerd


def test_make_demo_approves_a_mail_declines_a_late_one_and_escalates_the_third() -> None:
    done = subprocess.run(
        ["make", "demo"], cwd=ROOT, env=make_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^   stored  ", done.stdout, re.MULTILINE)) == 10
    decided = re.findall(r"^   decided  .*?\b(APPROVE|DECLINE|ESCALATE)\b", done.stdout, re.MULTILINE)
    assert decided == ["APPROVE", "DECLINE", "ESCALATE"]
    asked = '"refund history for sara@example.com"'
    assert done.stdout.count(f'refund_decision calls recall_memory {{"query": {asked}') == 2
    first_found = re.findall(r"recall_memory .*\n\s+recalled  score [\d.]+  (.*)", done.stdout)
    customers = ["sara@example.com", "ana@example.com", "sara@example.com"]
    assert len(first_found) == len(customers)
    assert all(customer in memory for customer, memory in zip(customers, first_found, strict=True))
    assert "order_triage calls days_between" in done.stdout
    assert re.search(r"In its context were [1-9]\d* episodes", done.stdout)
