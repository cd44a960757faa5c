"""Items live as the model says, whatever happens to them and in whatever order."""

from __future__ import annotations

import pytest

from tests.items.life.machine import ItemsMachine
from tests.support.machines import bounded

pytestmark = pytest.mark.soak

TestItems = ItemsMachine.TestCase
TestItems.settings = bounded(examples=30, steps=40)
