"""A bucket with S3's interface on this machine, in memory: moto's server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tools.cluster.configuration import Bucket
from tools.local_server import dismiss, free_port, heir_of

_NAME = "retain"
_START_TIMEOUT_S = 60


@contextlib.contextmanager
def serving_bucket(log: Path) -> Iterator[Bucket]:
    """Serve an empty bucket until the block ends; nothing of it is kept. Raises: SystemExit with the log."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    with log.open("wb") as sink:
        command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
        server = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": ""}, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
        )
    heir = heir_of(server)
    try:
        _create(f"{address}/{_NAME}", server, log)
        credentials = ("aws_access_key_id=local", "aws_secret_access_key=local")
        yield Bucket(f"s3://{_NAME}/cluster", (f"aws_endpoint={address}", "aws_region=us-east-1", *credentials))
    finally:
        server.terminate()
        server.wait()
        dismiss(heir)


def _create(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.put(url, timeout=10, trust_env=False).status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"the bucket's server did not start:\n{log.read_text()[-2000:]}")
