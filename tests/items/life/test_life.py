"""Items live as the model says, whatever happens to them and in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.items.life.machine import ItemsMachine
from tests.support.machines import bounded, soaking

pytestmark = pytest.mark.soak

TestItems = ItemsMachine.TestCase
TestItems.settings = (
    bounded(examples=30, steps=40)
    if soaking()
    else settings(bounded(examples=30, steps=40), derandomize=True, database=None)
)
"""The same walks in every ordinary run; `make soak` takes others."""
