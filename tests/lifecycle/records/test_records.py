"""Records of every feature together: see `tests.lifecycle.records.machine`."""

from __future__ import annotations

import pytest

from tests.lifecycle.records.machine import RecordsMachine
from tests.support.machines import bounded

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

TestRecords = RecordsMachine.TestCase
TestRecords.settings = bounded(examples=10, steps=16)
