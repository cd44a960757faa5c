"""mypy, strict, reads every file of the project, and each adapter fits its port."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from tools.paths import ROOT, project_files

if TYPE_CHECKING:
    from adapters.databases import D1, DurableAlarm, DurableSql
    from adapters.services import DurableInstances, DurableWriters, WorkersAi
    from adapters.stores import R2, WorkersKv
    from adapters.vectorize import Vectorize
    from adapters.web import WebCrypto, fetch, fetch_stream
    from bindings import in_background, now_ms
    from retain import ports
    from retain.models.providers.workers_ai import AiStreamer
    from retain.models.workers_ai import AiRunner

    def _adapters_fit_their_ports(  # the type checker reads this, and nothing runs it
        d1: D1, durable_sql: DurableSql, alarm: DurableAlarm, instances: DurableInstances, kv: WorkersKv
    ) -> tuple[ports.Sql, ports.ObjectSql, ports.Alarm, ports.AgentInstances, ports.Kv]:
        return d1, durable_sql, alarm, instances, kv

    def _other_adapters_fit_their_ports(
        ai: WorkersAi, objects: R2, index: Vectorize, crypto: WebCrypto, writers: DurableWriters
    ) -> tuple[AiRunner, AiStreamer, ports.Objects, ports.VectorIndex, ports.Crypto, ports.TenantWriters]:
        return ai, ai.stream, objects, index, crypto, writers

    def _functions_fit_their_ports() -> tuple[ports.Fetch, ports.FetchStream, ports.Clock, ports.Background]:
        return fetch, fetch_stream, now_ms, in_background


MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
CLIENT = ROOT / "clients" / "python"
MYPY_OF_THE_CLIENT = tomllib.loads((CLIENT / "pyproject.toml").read_text())["tool"]["mypy"]
"""Is checked on its own, once its generated modules are made."""


def test_every_python_file_of_the_project_is_checked() -> None:
    sources = [path.relative_to(ROOT) for path in project_files() if path.suffix == ".py"]
    assert len(sources) > 300
    of_the_client = {str((CLIENT / name).relative_to(ROOT)) for name in MYPY_OF_THE_CLIENT["files"]}
    checked = {*MYPY["files"], *of_the_client}
    unchecked = [str(path) for path in sources if not checked & {str(path), *map(str, path.parents)}]
    assert unchecked == []


def test_nothing_is_checked_less_than_strictly() -> None:
    assert MYPY["strict"] is True
    assert "exclude" not in MYPY
    assert [entry for entry in MYPY["overrides"] if entry.keys() - {"module", "ignore_missing_imports"}] == []
    assert MYPY_OF_THE_CLIENT["strict"] is True
    assert "exclude" not in MYPY_OF_THE_CLIENT
    assert [entry["module"] for entry in MYPY_OF_THE_CLIENT["overrides"]] == ["retain_client.api.*"]
    recipe = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    assert "cd clients/python && ../../$(VENV) -m mypy" in recipe


def test_the_folder_workers_does_not_pass_for_the_sdk() -> None:
    assert MYPY["mypy_path"][0] == "typings"
    assert (ROOT / "typings" / "workers" / "__init__.pyi").is_file()
    assert not (ROOT / "workers" / "__init__.py").exists()
