"""The examples of the Python client's README run in order against Retain on real workerd."""

from __future__ import annotations

import os
import re
import subprocess

import httpx
import pytest

from tests.clients.conftest import SCOPES, Application
from tests.docs.markdown import page
from tools.paths import ROOT

pytestmark = pytest.mark.workerd

_EXAMPLES = page("clients/python/README.md").blocks("python")
_CREATES = page("clients/python/README.md").blocks("console")[0].splitlines()[1:]


def test_both_readmes_create_the_key_alike_with_the_scopes_of_the_examples() -> None:
    blocks = [page(f"clients/{client}/README.md").blocks("console")[0] for client in ("python", "typescript")]
    assert blocks[0] == blocks[1]
    assert set(re.findall(r"--scope (\S+?)\)?$", blocks[0].replace(" --", "\n--"), re.MULTILINE)) == set(SCOPES)


@pytest.mark.usefixtures("library")
def test_every_example_runs(
    api: httpx.Client,
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RETAIN_URL", application.url)
    monkeypatch.setenv("RETAIN_TENANT", application.tenant)
    monkeypatch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    command = "\n".join([*_CREATES, 'echo "$RETAIN_KEY"'])
    made = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    monkeypatch.setenv("RETAIN_KEY", made.stdout.strip())
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
