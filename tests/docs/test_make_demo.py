"""`make demo` tells its story to the end, and serves it: from there to the reason of a decision are three clicks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, expect

from tests.docs.shell import make_environment
from tests.support.browser import browsing
from tools import demo
from tools.paths import ROOT

_SERVED = re.compile(r"Look at it: (http://\S+/console)")


@pytest.mark.workerd
@pytest.mark.timeout(300)
def test_make_demo_decides_three_mails_and_the_reason_of_each_is_three_clicks_away() -> None:
    command = ["make", "demo", "SERVE=1"]
    with subprocess.Popen(
        command, cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                lines.append(line)
                if served := _SERVED.search(line):
                    _find_the_reason(served[1])
                    break
        finally:
            os.killpg(process.pid, signal.SIGTERM)
    _check_story("".join(lines))
    served = _SERVED.search(lines[-1])
    assert served, "".join(lines)
    with pytest.raises(httpx.ConnectError):
        httpx.get(served[1], trust_env=False)


def _find_the_reason(address: str) -> None:
    """Open the console, and click until each part of a recalled memory's score is seen."""
    clicks = 0

    def click(what: Locator) -> None:
        nonlocal clicks
        what.click()
        clicks += 1

    with browsing() as browser:
        browser.do(f"open {address}")
        click(browser.tab.get_by_role("link", name="refund_decision").first)
        click(browser.tab.get_by_text("recall_memory", exact=True))
        reason = browser.tab.locator(".recalled > li").filter(has_text="sara@example.com: order SO-4411")
        expect(reason.locator(".parts li").first).to_be_visible()
        click(browser.tab.get_by_role("link", name="Why these?"))
        expect(browser.tab.get_by_label("Query", exact=True)).to_have_value("refund history for sara@example.com")
        assert clicks <= 3
        assert browser.errors == []


def _check_story(text: str) -> None:
    """What was recalled decides, and each of the three decisions is another one."""
    assert len(re.findall(r"^   stored  ", text, re.MULTILINE)) == 10, text
    decided = re.findall(r"^   decided  .*?\b(APPROVE|DECLINE|ESCALATE)\b", text, re.MULTILINE)
    assert decided == ["APPROVE", "DECLINE", "ESCALATE"]
    asked = '"refund history for sara@example.com"'
    assert text.count(f'refund_decision calls recall_memory {{"query": {asked}') == 2
    first_found = re.findall(r"recall_memory .*\n\s+recalled  score [\d.]+  (.*)", text)
    customers = ["sara@example.com", "ana@example.com", "sara@example.com"]
    assert len(first_found) == len(customers)
    assert all(customer in memory for customer, memory in zip(customers, first_found, strict=True))
    assert "order_triage calls days_between" in text
    assert re.search(r"In its context were [1-9]\d* episodes", text)


@pytest.mark.parametrize("served", [False, True])
def test_who_ends_the_demo_ends_its_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], served: bool
) -> None:
    handlers: dict[int, Any] = {}
    ended: list[bool] = []

    @contextmanager
    def serving(_: Path) -> Iterator[SimpleNamespace]:
        try:
            yield SimpleNamespace(base_url="http://127.0.0.1:1")
        finally:
            ended.append(True)

    monkeypatch.setattr(demo, "serving", serving)
    monkeypatch.setattr(demo, "tell", lambda _: handlers[signal.SIGTERM](signal.SIGTERM, None))
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    assert demo.main(["--serve"] if served else []) == 130
    assert ended == [True]
    assert "Next:" not in capsys.readouterr().out


def test_the_demo_ends_and_says_what_to_try_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[str] = []

    @contextmanager
    def serving(_: Path) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(base_url="http://127.0.0.1:1")

    monkeypatch.setattr(demo, "serving", serving)
    monkeypatch.setattr(demo, "tell", played.append)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert demo.main([]) == 0
    assert played == ["http://127.0.0.1:1"]
    assert "make demo SERVE=1" in capsys.readouterr().out
