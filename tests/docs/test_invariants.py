"""Every invariant of docs/invariants.md has a test that is named after it, and no test names another."""

from __future__ import annotations

import re

from tests.docs.markdown import page
from tools.paths import ROOT

_NAMED = re.compile(r"^(?:async )?def test_invariant_(\d+)_", re.MULTILINE)


def test_every_invariant_is_named_by_a_test() -> None:
    listed = set(re.findall(r"^(\d+)\. \*\*", page("docs/invariants.md").path.read_text(), re.MULTILINE))
    named = {number for path in (ROOT / "tests").rglob("test_*.py") for number in _NAMED.findall(path.read_text())}
    assert listed == named
    assert len(listed) == 9
