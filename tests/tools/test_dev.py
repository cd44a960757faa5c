"""The server in the foreground: what it prints, and what it does when its port is taken."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tools import dev
from tools.dev import StateTaken, claim
from tools.local_server import PortTaken
from tools.paths import PRODUCTION_CONFIG
from tools.stage import read_config

PRINTED = """
 ⛅️ wrangler 4.164.0
────────────────────
retain has access to the following bindings:
Binding                           Resource                  Mode
env.KV (0000)                     KV Namespace              local
Attaching additional modules:
┌──────────────────┬────────┬────────────┐
│ Name             │ Type   │ Size       │
├──────────────────┼────────┼────────────┤
│ retain/http.py   │ python │ 4.11 KiB   │
└──────────────────┴────────┴────────────┘
Total (211 modules)
[wrangler:info] Ready on http://127.0.0.1:8787
[custom build] concierge.yaml: instructions: Field required
[wrangler:info] POST /v1/agents/default/concierge/run 200 OK (31ms)
{"level": "ERROR", "message": "unexpected error"}
⎔ Reloading local server...
"""


def test_what_wrangler_prints_is_shown_without_its_tables() -> None:
    assert list(dev.without_noise(PRINTED.splitlines(keepends=True))) == PRINTED.splitlines(keepends=True)[-4:]


def test_what_a_failed_build_printed_is_shown_without_the_dump_of_its_process() -> None:
    printed = [
        "[custom build] concierge.yaml: instructions: Field required\n",
        "✘ [ERROR] \x1b[1mk [Error]: Process exited with non-zero status (1)\x1b[0m\n",
        "      at async runCustomBuild (cli.js:193066:5)\n",
        "      _process: ChildProcess {\n",
        "  }\n",
        "✘ [ERROR] Running custom build `python -m tools.stage` failed.\n",
        "  stack: of something else\n",
    ]
    assert list(dev.without_noise(printed)) == [printed[0], *printed[5:]]


def test_wranglers_hint_how_to_trigger_a_schedule_names_one_that_has_work() -> None:
    [hint] = dev.without_noise(['    curl "http://127.0.0.1:8787/cdn-cgi/local/scheduled"\n'])
    address = hint.split('"')[1]
    assert urlsplit(address).path == "/cdn-cgi/local/scheduled"
    [cron] = parse_qs(urlsplit(address).query)["cron"]
    assert cron in read_config(PRODUCTION_CONFIG)["triggers"]["crons"]


def test_a_taken_port_is_reported_before_anything_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepared() -> None:
        raise AssertionError("the configuration was written")

    monkeypatch.setattr(dev, "write_local_config", prepared)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} is in use"):
            dev.main(["--port", str(port)])


def test_a_state_is_served_once_until_the_last_process_of_its_server_ends(tmp_path: Path) -> None:
    lock = claim(tmp_path, "http://127.0.0.1:8787")
    server = subprocess.Popen(["sleep", "60"], pass_fds=(lock.fileno(),))
    try:
        for _ in range(2):
            with pytest.raises(StateTaken, match=r"is served on http://127\.0\.0\.1:8787: end that server"):
                claim(tmp_path, "http://127.0.0.1:8788")
            lock.close()  # `retain dev` was killed, and what it started serves on
    finally:
        server.kill()
        server.wait()
    with claim(tmp_path, "http://127.0.0.1:8788") as lock:
        assert (tmp_path / "served.lock").read_text() == "http://127.0.0.1:8788"


def test_what_takes_long_is_named_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def migrate(_: Path) -> None:
        raise SystemExit(capsys.readouterr().out)

    monkeypatch.setattr(dev, "check_port", lambda _: None)
    monkeypatch.setattr(dev, "write_local_config", lambda: None)
    monkeypatch.setattr(dev, "claim", lambda *_: None)
    monkeypatch.setattr(dev, "migrate", migrate)
    with pytest.raises(
        SystemExit, match=r"^starting on http://.*\npreparing the database: a new one takes up to a minute\n$"
    ):
        dev.main(["--state", str(tmp_path)])
