"""The files of `deploy/cluster/`, read by the tools that execute them where these are installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import ClassVar

import pytest
import yaml

from tools.paths import ROOT

_FOLDER = ROOT / "deploy" / "cluster"
_SECRET = (".env", "cluster.key", "node.env", "settings.env")


def test_the_shell_reads_the_script_that_starts_a_node() -> None:
    read = subprocess.run(["sh", "-n", str(_FOLDER / "start.sh")], capture_output=True, check=False)
    assert (read.returncode, read.stderr) == (0, b"")


class Migrations(BaseHTTPRequestHandler):
    """Notes that somebody asked for the migrations."""

    asked: ClassVar[Queue[str]] = Queue()

    def do_POST(self) -> None:
        """Answer as a node does."""
        self.asked.put(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_node_is_asked_for_its_migrations_and_not_a_proxy(tmp_path: Path) -> None:
    workerd = tmp_path / "workerd"
    workerd.write_text("#!/bin/sh\nread -r _\n")
    workerd.chmod(0o755)
    proxy = dict.fromkeys(("http_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    with HTTPServer(("127.0.0.1", 0), Migrations) as server:
        Thread(target=server.handle_request, daemon=True).start()
        node = {"OBJECTS": str(tmp_path), "WORKERD": str(workerd), "MIGRATE_ADDR": f"127.0.0.1:{server.server_port}"}
        command, environment = [str(_FOLDER / "start.sh"), str(tmp_path)], {"PATH": os.environ["PATH"], **proxy, **node}
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, start_new_session=True) as started:
            try:
                assert Migrations.asked.get(timeout=10) == "/"
            finally:
                os.killpg(started.pid, signal.SIGKILL)


@pytest.mark.parametrize("advertised", [None, "node-1:7000"])
def test_workerd_replaces_the_script_and_gets_the_node_s_addresses(tmp_path: Path, advertised: str | None) -> None:
    workerd = tmp_path / "workerd"
    workerd.write_text('#!/bin/sh\necho $$ "$PWD"\nprintf "%s\\n" "$@"\nkill -TERM -$$\n')
    workerd.chmod(0o755)
    (tmp_path / "served").mkdir()
    node = {
        "OBJECTS": str(tmp_path / "objects"),
        "WORKERD": str(workerd),
        "HTTP_ADDR": "127.0.0.1:1",
        "MIGRATE_ADDR": "127.0.0.1:2",
        "CLUSTER_ADDR": "10.0.0.1:7000",
        **({} if advertised is None else {"CLUSTER_ADVERTISE": advertised}),
    }
    command, environment = [str(_FOLDER / "start.sh"), str(tmp_path / "served")], {"PATH": os.environ["PATH"], **node}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        printed, _ = started.communicate(timeout=10)
    first, *options = printed.splitlines()
    assert first == f"{started.pid} {tmp_path / 'served'}"
    assert (tmp_path / "objects").is_dir()
    assert {*options} >= {
        f"--directory-path=objects={tmp_path / 'objects'}",
        "--socket-addr=http=127.0.0.1:1",
        "--socket-addr=migrate=127.0.0.1:2",
        "--cluster-addr=10.0.0.1:7000",
    }
    assert [option for option in options if "advertise" in option] == (
        [] if advertised is None else [f"--cluster-advertise={advertised}"]
    )


def test_migrations_are_asked_for_on_this_machine_alone() -> None:
    assert "${MIGRATE_ADDR:=127.0.0.1:" in (_FOLDER / "start.sh").read_text(), "nobody else may apply them"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "retain-node.service"
    content = (_FOLDER / "retain-node.service").read_text()
    unit.write_text(content.replace("/opt/retain/deploy/cluster/start.sh", str(_FOLDER / "start.sh")))
    read = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


def test_systemd_starts_a_node_again_for_as_long_as_it_takes() -> None:
    unit = (_FOLDER / "retain-node.service").read_text()
    head, _, service = unit.partition("[Service]")
    assert "StartLimitIntervalSec=0\n" in head, "it gives a unit up that was started five times in ten seconds"
    assert "Restart=always\n" in service


def test_every_variable_of_the_script_and_every_file_of_the_composition_is_known() -> None:
    composition = yaml.compose((_FOLDER / "compose.yaml").read_text())
    assert composition is not None, "it is YAML"
    text = (_FOLDER / "compose.yaml").read_text()
    for name in ("deploy/cluster/Dockerfile", "cluster.key", "settings.env", "node.env"):
        assert name in text
    unit = (_FOLDER / "retain-node.service").read_text() + (_FOLDER / "node.env.example").read_text()
    for variable in ("OBJECTS", "HTTP_ADDR", "CLUSTER_ADDR", "WORKERD"):
        assert variable in unit, variable


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an archive has no repository")
def test_no_secret_of_a_cluster_gets_into_an_image_or_a_commit() -> None:
    kept_out = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"deploy/cluster/{name}" for name in _SECRET} | {".git", "**/.dev.vars"} <= {*kept_out}
    for name in _SECRET:
        asked = ["git", "check-ignore", "--quiet", str(_FOLDER / name)]
        assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0, name
