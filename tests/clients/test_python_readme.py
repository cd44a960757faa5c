"""The examples of the Python client's README run in order against Retain on real workerd."""

from __future__ import annotations

import httpx
import pytest

from tests.clients.conftest import Application
from tests.docs.markdown import page

pytestmark = pytest.mark.workerd

_EXAMPLES = page("clients/python/README.md").blocks("python")


@pytest.mark.usefixtures("library")
def test_every_example_runs(
    api: httpx.Client,
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RETAIN_URL", application.url)
    monkeypatch.setenv("RETAIN_KEY", application.key)
    monkeypatch.setenv("RETAIN_TENANT", application.tenant)
    printed = []
    names: dict[str, object] = {}
    for example in _EXAMPLES:
        exec(compile(example, "README.md", "exec"), names)
        printed.append(capsys.readouterr().out)
    first, streamed, followed, attached, defined, remembered, listed, users, refused, asynchronous, quotas = printed
    assert first.startswith("completed\n")
    assert streamed.endswith("completed\n")
    assert "run.completed" in followed
    assert attached == "completed b'Ann: 3 desks' ['notes.txt']\n"
    assert defined == "False ['/delegates/0']\n2 3 3\n[(4, True), (3, False), (2, False), (1, False)]\n"
    assert remembered.startswith("['Ann drinks tea.'")
    assert "Ann drinks tea." in listed
    assert "completed" in listed
    assert users.endswith(" completed\n")
    assert refused == "no_such_memory 404\n"
    assert "run.completed" in asynchronous
    assert "sdr" in asynchronous
    assert "TenantQuotas" in quotas
