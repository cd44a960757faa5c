"""Evaluate the agents of a project on datasets of `evals/`, on the real workerd: in a terminal or in CI.

Exits with 1 when a run is below one of its dataset's thresholds or a case could not be scored, with 2 for an unusable
dataset.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import httpx
from rich.console import Console
from rich.table import Table

from retain.cli.project import require_project, surrounding_project
from retain.cli.yaml_text import read_yaml_file
from retain.errors import Unavailable
from retain.errors.codes import ForeignCode

TENANT = "evaluation"
MAX_CALLS = 1000
_ENDINGS = (".json", ".yaml", ".yml")

_out = Console(highlight=False, soft_wrap=True)


class _Score(TypedDict):
    name: str
    value: float
    passed: bool | None
    detail: str | None


class _CaseError(TypedDict):
    code: str
    message: str


class _CaseResult(TypedDict):
    case_id: str
    outcome: Literal["passed", "failed", "errored"]
    scores: list[_Score]
    error: _CaseError | None


class _RunSummary(TypedDict):
    total: int
    passed: int
    failed: int
    errored: int
    averages: dict[str, float]
    below: list[str]


class EvaluatedRun(TypedDict):
    """What is read of a run that the server shows when every case is scored."""

    run_id: str
    dataset: str
    version: str
    state: Literal["running", "cleaning", "completed"]
    thresholds: dict[str, float]
    summary: _RunSummary
    results: list[_CaseResult]
    cursor: str | None


def dataset_file(name: str) -> Path:
    """Return the file of a dataset: a path, or a name in `evals/`. Raises: SystemExit."""
    known = {path.stem: path for path in _project_datasets()}
    if Path(name).is_file():
        return Path(name)
    if name not in known:
        place = f"evals/ has: {', '.join(known)}" if known else "outside a project, name a file"
        _out.print(f"there is no dataset {name}; {place}")
        raise SystemExit(2)
    return known[name]


def _project_datasets() -> list[Path]:
    """Return the datasets of the surrounding project by name; none outside a project."""
    project = surrounding_project()
    return [] if project is None else sorted(p for p in project.datasets.iterdir() if p.suffix in _ENDINGS)


def load(path: Path) -> dict[str, object]:
    """Return a dataset's content. JSON is YAML as well. Raises: SystemExit."""
    try:
        return read_yaml_file(path)
    except ValueError as error:
        _out.print(f"{path.name} is not a dataset: {error}", markup=False)
        raise SystemExit(2) from error


def evaluate(client: httpx.Client, name: str, content: dict[str, object]) -> EvaluatedRun:
    """Upload the dataset, run it until every case is scored, and return the run. Raises: SystemExit."""
    base = f"/admin/tenants/{TENANT}/evals"
    put = client.put(f"{base}/datasets/{name}", json=content)
    if put.is_error:
        _out.print(f"{name} is refused: {put.text}", markup=False)
        raise SystemExit(2)
    progress = _checked(client.post(f"{base}/runs", json={"dataset": name}))
    for _ in range(MAX_CALLS):
        run: EvaluatedRun = progress["run"]
        if run["state"] != "running":  # only erasing scratch tenants is left, and this server stops
            return _whole(client, f"{base}/runs/{run['run_id']}", run)
        time.sleep((progress["retry_after_ms"] or 0) / 1000)
        progress = _checked(client.post(f"{base}/runs/{run['run_id']}"))
    _out.print(f"the evaluation of {name} did not finish in time")
    raise SystemExit(1)


def _whole(client: httpx.Client, path: str, run: EvaluatedRun) -> EvaluatedRun:
    """Return the run with the results of every page. Raises: SystemExit."""
    results, cursor = list(run["results"]), run["cursor"]
    while cursor is not None:
        page = _checked(client.get(path, params={"cursor": cursor}))
        results += page["results"]
        cursor = page["cursor"]
    return {**run, "results": results, "cursor": None}


def report(run: EvaluatedRun) -> bool:
    """Print a run as tables; return whether it meets its dataset's thresholds."""
    cases = Table(title=f"{run['dataset']} ({run['version'][:12]})")
    for column in ("case", "outcome", "scores", "why"):
        cases.add_column(column, overflow="fold")
    colours = {"passed": "green", "failed": "red", "errored": "magenta"}
    for result in run["results"]:
        scores = "  ".join(f"{score['name']} {score['value']:.2f}" for score in result["scores"])
        error = result["error"]
        details = [f"{score['name']}: {score['detail']}" for score in result["scores"] if score["passed"] is False]
        why = f"{error['code']}: {error['message']}" if error else "; ".join(details)
        cases.add_row(result["case_id"], f"[{colours[result['outcome']]}]{result['outcome']}[/]", scores, _plain(why))
    _out.print(cases)
    summary = run["summary"]
    averages = Table("average", "value", "threshold")
    for metric, value in summary["averages"].items():
        bound = run["thresholds"].get(metric)
        shown = f"[red]{value:.3f}[/]" if metric in summary["below"] else f"{value:.3f}"
        averages.add_row(metric, shown, "" if bound is None else f"{bound:.3f}")
    _out.print(averages)
    _out.print(
        f"{run['dataset']}: {summary['passed']} passed, {summary['failed']} failed, {summary['errored']} errored"
        f" of {summary['total']}"
    )
    if summary["below"]:
        _out.print(f"[red]below the threshold: {', '.join(summary['below'])}[/]")
    return not summary["below"] and not summary["errored"]


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def _checked(response: httpx.Response) -> dict[str, Any]:
    if response.is_error:
        _out.print(f"{response.request.method} {response.request.url.path}: {response.text}", markup=False)
        raise SystemExit(1)
    try:
        answer: dict[str, Any] = response.json()
    except ValueError as error:
        _out.print(f"what answered {response.request.url} is not Retain: it sent no JSON", markup=False)
        raise SystemExit(1) from error
    return answer


def run_all(client: httpx.Client, paths: Sequence[Path]) -> bool:
    """Evaluate every dataset on a server and report; return whether all meet their thresholds."""
    _checked(client.put(f"/admin/tenants/{TENANT}"))
    good = [report(evaluate(client, path.stem, load(path))) for path in paths]  # every one is reported
    return all(good)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a server with a fresh state, evaluate, and report; return the process's exit status.

    Raises: Misconfigured (code `no_project`) without a project and without --base-url; Unavailable when nothing answers.
    """
    parser = argparse.ArgumentParser(prog="retain eval", description=__doc__)
    parser.add_argument("datasets", nargs="+", help="files, or names in evals/; 'all' for every dataset there")
    parser.add_argument("--base-url", help="a running server to use, instead of starting one")
    given = parser.parse_args(arguments)
    paths = _project_datasets() if given.datasets == ["all"] else [dataset_file(name) for name in given.datasets]
    for path in paths:
        load(path)
    if given.base_url:
        good = _on(given.base_url, paths)
    else:
        require_project().import_tools()
        from tools.local_server import serving

        with tempfile.TemporaryDirectory(prefix="retain-eval-") as folder, serving(Path(folder)) as server:
            good = _on(server.base_url, paths)
    return 0 if good else 1


def _on(base_url: str, paths: Sequence[Path]) -> bool:
    limits = httpx.Limits(max_keepalive_connections=0)
    try:
        with httpx.Client(base_url=base_url, timeout=120, trust_env=False, limits=limits) as client:
            return run_all(client, paths)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"the server did not answer: {error}", code=ForeignCode("unreachable")) from error
