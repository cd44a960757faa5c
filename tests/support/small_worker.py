"""A Worker in Python for one question to the real workerd, with the vendored packages."""

from __future__ import annotations

import http.client
from collections.abc import Mapping

from benchmarks.harness.retain_worker import configuration
from benchmarks.harness.services import worker
from benchmarks.harness.workerd import running
from tools.worker_modules import python_packages


def answer_of(name: str, files: Mapping[str, bytes], body: str = "") -> tuple[int, str]:
    """Start the Worker that is these files, post it a body, and return the status and the text of its answer.

    name: two that run at the same time need two.
    """
    config = configuration()
    date, flags = config["compatibility_date"], config["compatibility_flags"]
    service = worker("asked", files, shared=python_packages(), date=date, flags=flags)
    with running(f"test-{name}", [service]) as workerd:
        connection = http.client.HTTPConnection("127.0.0.1", workerd.ports["asked"], timeout=100)
        connection.request("POST", "/", body)
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
    return answer.status, content
