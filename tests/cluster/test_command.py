"""The command that serves a cluster ends with its nodes, and leaves a cluster that is served already as it is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tools.cluster import __main__ as command
from tools.cluster import local, nodes
from tools.cluster.configuration import Bucket
from tools.local_server import PortTaken
from tools.paths import ROOT


@contextmanager
def _yielding(value: object) -> Iterator[object]:
    yield value


_KILLED = """
import os, signal, sys
from pathlib import Path
from tools.cluster import bucket, nodes
folder = Path(sys.argv[1])
waiting, begun = folder / "waiting", folder / "begun"
waiting.write_text(f"#!/bin/sh\\nexec 3>{folder}/pipe; echo >{begun}; exec sleep 600")
waiting.chmod(0o755)
os.mkfifo(begun)
nodes._SCRIPT = waiting
nodes.Node("node-1", folder / "node-1" / "served", os.environ, 9, 9, 9).start()
begun.read_bytes()
bucket.sys.executable = str(waiting)
bucket._create = lambda *_: begun.read_bytes()
serving = bucket.serving_bucket(folder / "bucket.log")
serving.__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP], ids=["ended", "its terminal closed"])
def test_who_ends_a_cluster_ends_its_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, sent: signal.Signals
) -> None:
    handlers: dict[int, Any] = {}
    ended: list[bool] = []

    @contextmanager
    def serving(*_: object, **__: object) -> Iterator[list[object]]:
        assert "starting 3 nodes" in capsys.readouterr().out
        try:
            yield []
        finally:
            ended.append(True)

    monkeypatch.setattr(command, "check_port", lambda _: None)
    monkeypatch.setattr(command, "CACHE", tmp_path)
    monkeypatch.setattr(command, "local_cluster", serving)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(time, "sleep", lambda _: handlers[sent](sent, None))
    assert command.main([]) == 0
    assert ended == [True]


@pytest.mark.parametrize("before", [0, 2], ids=["of the first node", "of the last"])
def test_a_taken_port_is_refused_before_the_disks_of_the_nodes_that_have_it_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: int
) -> None:
    monkeypatch.setattr(command, "CACHE", tmp_path)
    monkeypatch.setattr(command, "local_cluster", lambda *_, **__: pytest.fail("it was served"))
    with socket.create_server(("127.0.0.1", 0)) as served:
        port = served.getsockname()[1] - before
        disk = tmp_path / f"cluster-{port}" / "node-1"
        disk.mkdir(parents=True)
        with pytest.raises(PortTaken, match=r"port \d+ is in use"):
            command.main(["--port", str(port)])
    assert disk.exists()


def test_variables_of_development_are_those_of_the_nodes_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: list[dict[str, Any]] = []
    (tmp_path / ".dev.vars").write_text("CHAT_PROVIDER=openai\nCHAT_API_KEY=k\n")
    monkeypatch.setattr(local, "DEVELOPMENT_VARIABLES", tmp_path / ".dev.vars")
    monkeypatch.setattr(local, "write_local_config", lambda: None)
    monkeypatch.setattr(local, "serving_bucket", lambda _: _yielding(Bucket("s3://b")))
    monkeypatch.setattr(local, "node_files", lambda config, _: read.append(config["vars"]))
    monkeypatch.setattr(local, "serving_nodes", lambda *_, environment, **__: _yielding(environment["CHAT_API_KEY"]))
    with local.local_cluster(tmp_path, 1) as nodes:
        assert cast("object", nodes) == "k"
    [variables] = read
    assert (variables["CHAT_PROVIDER"], variables["CHAT_MODEL"]) == ("openai", "scripted")
    assert "CHAT_API_KEY" not in variables, "a secret comes from the environment"


def test_a_node_that_ends_again_and_again_leaves_nothing_of_its_earlier_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The script asks for migrations in the background, and a workerd that cannot start ends before that."""
    os.mkfifo(tmp_path / "pipe")
    script = tmp_path / "start"
    script.write_text(f"#!/bin/sh\n(exec 3>{tmp_path}/pipe; sleep 600) &\nexec sleep 0.2")
    script.chmod(0o755)
    monkeypatch.setattr(nodes, "_SCRIPT", script)
    monkeypatch.setattr(nodes, "_PAUSE_S", 600)
    (tmp_path / "node-1").mkdir()
    node = nodes.Node("node-1", tmp_path / "node-1" / "served", os.environ, 9, 9, 9)
    node.start()
    assert (tmp_path / "pipe").read_bytes() == b""  # until what had it open has ended
    node.kill()


def test_nodes_and_their_bucket_end_with_the_process_that_started_them_even_if_that_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "node-1").mkdir()
    with subprocess.Popen([sys.executable, "-c", _KILLED, tmp_path], cwd=ROOT) as killed:
        assert pipe.read_bytes() == b""  # until all that had it open have ended
    assert killed.returncode == -signal.SIGKILL
