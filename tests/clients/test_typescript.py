"""The TypeScript client: its types, what it decides, and its README's examples in Node and in workerd."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from retain.application_keys.origins import SENT
from tests.clients.conftest import Application
from tests.clients.wire import Wire
from tests.docs.markdown import page, spans
from tools.clients import TYPESCRIPT
from tools.paths import NODE_BIN

HERE = Path(__file__).parent
_IMPORT, *_EXAMPLES = "".join(page("clients/typescript/README.md").blocks("ts")).partition(";\n")
EXAMPLES = "".join(_EXAMPLES[1:])
IMPORT = f"{_IMPORT};\n"


def environment(application: Application) -> dict[str, str]:
    """Return the variables that the examples read."""
    return {"RETAIN_URL": application.url, "RETAIN_KEY": application.key, "RETAIN_TENANT": application.tenant}


def node(arguments: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run the project's Node and return what it printed."""
    done = subprocess.run(
        [NODE_BIN / "node", *arguments],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(package: Path) -> Path:
    """The README's examples, and the use of every method, compiled: their types fit the package's."""
    (package / "readme.ts").write_text(IMPORT + EXAMPLES)
    shutil.copy(HERE / "surface.ts", package)
    options = ["--strict", "--skipLibCheck", "--target", "ES2022", "--module", "NodeNext", "--types", "node"]
    node([NODE_BIN / "tsc", *options, "readme.ts", "surface.ts"], package)
    return package


def assert_as_documented(printed: str) -> None:
    lines = printed.splitlines()
    assert lines[:2] == ["completed", "completed true"]
    assert "run.completed" in lines
    assert "\nfalse [ '/delegates/0' ]\n2 3 3\n4 true\n3 false\n2 false\n1 false\n" in printed
    assert "[ 'Ann drinks tea.'" in printed
    assert lines[-3:] == ["true true completed", "no_such_memory 404", "true"]


@pytest.mark.parametrize(("name", "least"), [("typescript", 11), ("typescript_options", 80)])
def test_its_decisions_and_readers(library: Any, package: Path, name: str, least: int) -> None:
    usual = json.dumps(asdict(library.Retries()))
    variables = {"PACKAGE": str(package), "SENT": ",".join(SENT), "USUAL": usual}
    printed = node(["--test", "--test-reporter=tap", HERE / f"{name}.test.mjs"], package, variables)
    assert "# fail 0" in printed
    assert int(printed.partition("# pass ")[2].split()[0]) >= least


def test_the_types_of_events_have_the_names_and_fields_that_the_page_lists() -> None:
    typed = (TYPESCRIPT / "src" / "server-events.ts").read_text().partition("export interface EventData {")[2]
    declared = dict(re.findall(r'^  "([a-z.]+)": (.*);$', typed.partition("\n}\n")[0], re.MULTILINE))
    section = page("docs/agents.md").text.partition("\n| event | data |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in section.splitlines()]
    listed = {name: spans(fields) for names, fields in rows for name in spans(names)}
    assert declared.keys() == listed.keys()
    of_either = {"approval.requested": {"approved", "by", "reason"}}
    for name, fields in listed.items():
        known = declared[name].replace("Called", "turn call")
        assert [field for field in fields if field not in known and field not in of_either.get(name, ())] == [], name


def test_both_clients_repeat_the_same(library: Any, package: Path) -> None:
    text = (package / "node_modules" / "retain-client" / "dist" / "retries.js").read_text()
    assert library.retries._REPEATABLE_POST.pattern.replace("/", r"\/", 1) in text


@pytest.mark.workerd
def test_every_example_of_the_readme_runs_in_node(api: httpx.Client, programs: Path, application: Application) -> None:
    assert_as_documented(node(["readme.js"], programs, environment(application)))


@pytest.mark.workerd
def test_every_other_method_does_what_its_name_says(
    api: httpx.Client, programs: Path, application: Application
) -> None:
    node(["surface.js"], programs, environment(application))


WORKER = """
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .application),
    (name = "internet", network = (allow = ["local", "private", "public"])),
  ],
);

const application :Workerd.Worker = (
  compatibilityDate = "2026-01-01",
  compatibilityFlags = ["nodejs_compat"],
  modules = [%s],
  bindings = [%s],
);
"""


@pytest.mark.workerd
def test_every_example_of_the_readme_runs_in_a_worker(
    api: httpx.Client, package: Path, programs: Path, application: Application
) -> None:
    program = (programs / "readme.js").read_text().partition(";\n")[2]
    worker = (
        f"{IMPORT.replace('retain-client', './client/index.js')}\nexport default {{ async test() {{\n{program}\n}} }};"
    )
    (package / "worker.js").write_text(worker)
    client = package / "node_modules" / "retain-client" / "dist"
    modules = {"worker.js": "worker.js"}
    modules |= {f"client/{path.name}": str(path.relative_to(package)) for path in sorted(client.glob("*.js"))}
    modules["client/openapi-fetch"] = "node_modules/openapi-fetch/dist/index.mjs"
    listed = ", ".join(f'(name = "{name}", esModule = embed "{path}")' for name, path in modules.items())
    bound = ", ".join(
        f"(name = {json.dumps(name)}, text = {json.dumps(value)})" for name, value in environment(application).items()
    )
    (package / "worker.capnp").write_text(WORKER % (listed, bound))
    done = subprocess.run(
        [NODE_BIN / "workerd", "test", "worker.capnp"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert_as_documented(done.stdout)


@pytest.mark.workerd
def test_a_stream_continues_after_the_event_that_arrived_last(
    api: httpx.Client, package: Path, application: Application
) -> None:
    (package / "stream.js").write_text(
        """
import { Retain } from "retain-client";

const { RETAIN_URL: url, RETAIN_KEY: key, RETAIN_TENANT: tenant } = process.env;
const retain = new Retain({ url, key, tenant, retries: { firstPauseS: 0.01 } });
const events = retain.runs.stream("sdr", { input: "hello" });
for await (const event of events) if (event.name !== "text.delta") console.log(event.name);
"""
    )
    with Wire(application.url) as wire:
        variables = environment(application) | {"RETAIN_URL": wire.url}
        whole = node(["stream.js"], package, variables)
        wire.cut_after_event("run.started")
        assert node(["stream.js"], package, variables) == whole
        wire.cut_before_answer()
        assert node(["stream.js"], package, variables) == whole
        assert wire.cuts == 2
    assert whole.splitlines()[0] == "run.started"
    assert whole.splitlines()[-1] == "run.completed"
    assert len(api.get(f"/admin/agents/{application.tenant}/runs").json()["runs"]) == 3
