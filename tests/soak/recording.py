"""A plugin of pytest that writes what one round of a soak did: steps by machine, and each failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.machines import steps_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file."""
    parser.addoption("--soak-record", type=Path, required=True, help="the file to write")


class Recorder:
    """Collects the failures of one round."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failures: list[dict[str, str]] = []
        self._passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down a failure."""
        self._passed += report.when == "call" and report.passed
        if report.failed:
            self._failures.append({"test": report.nodeid, "text": report.longreprtext})

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        record = {"passed": self._passed, "steps": dict(sorted(steps_of.items())), "failures": self._failures}
        self._file.write_text(json.dumps(record), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record this run."""
    config.pluginmanager.register(Recorder(config.getoption("--soak-record")))
