"""What each import costs in workerd: the time of a request that imports one module whose own imports are there already."""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.processes import usage_of
from benchmarks.harness.report import markdown
from benchmarks.harness.retain_worker import configuration, python_worker
from benchmarks.harness.services import Service
from benchmarks.harness.workerd import Workerd, running
from tools.stage import wanted_files

HERE = Path(__file__).parent
MAIN = "entry_of_retain"
"""What the main module of Retain is called next to that of the benchmark."""
_EMPTY = 50
"""Requests that import nothing, to know what a request itself takes."""


@dataclass(frozen=True, slots=True)
class Import:
    """What the import of one module takes, without what it imports, in milliseconds. with_main: the main module needs it."""

    module: str
    ms: float
    cpu_ms: float
    with_main: bool

    @property
    def package(self) -> str:
        """The package that the module is part of; all of the standard library is one."""
        first = self.module.partition(".")[0]
        own = ("retain", "assembly", "adapters", "bindings", "durable_objects", "agents", MAIN)
        vendored = ("pydantic", "pydantic_core", "jwt", "ulid", "cronsim", "fastjsonschema", "workers")
        typing = ("typing_extensions", "typing_inspection", "annotated_types")
        if first in own:
            return "Retain"
        if first in typing:
            return "what pydantic needs"
        return first if first in vendored else "the standard library"


def services() -> list[Service]:
    """Return the Worker that imports, with all of Retain's modules."""
    files = wanted_files(configuration())
    own = files.pop("entry.py")
    files |= {f"{MAIN}.py": own, "entry.py": (HERE / "importing_entry.py").read_bytes()}
    return [python_worker("importing", files, [])]


def every_module() -> list[str]:
    """Return the main module, and all others of Retain."""
    names = (
        path.removesuffix(".py").replace("/", ".") for path in wanted_files(configuration()) if path.endswith(".py")
    )
    return [MAIN, *sorted(name.removesuffix(".__init__") for name in names if name != "entry")]


def measured(rounds: int, *, main_only: bool = False) -> list[Import]:
    """Return what each module takes: the median of so many fresh processes, less that of a request without an import.

    main_only: measure only what the main module needs.
    """
    spent: dict[str, list[tuple[float, float]]] = {}
    every = services()
    with running("start-imports", every) as workerd:
        main = _asked(workerd, [MAIN])[0]
        order = main if main_only else [*main, *_asked(workerd, every_module())[0]]
    for _ in range(rounds):
        with running("start-imports", every) as workerd:
            empty = [_asked(workerd, [])[1:] for _ in range(_EMPTY)][_EMPTY // 2 :]
            less = [statistics.median(times) for times in zip(*empty, strict=True)]
            for name in order:
                _, ms, cpu_ms = _asked(workerd, [name])
                spent.setdefault(name, []).append((ms - less[0], cpu_ms - less[1]))
    found = []
    for name, times in spent.items():
        ms, cpu_ms = (max(0.0, statistics.median(values)) for values in zip(*times, strict=True))
        found.append(Import(name, ms, cpu_ms, name in main))
    return found


def _asked(workerd: Workerd, names: Iterable[str]) -> tuple[list[str], float, float]:
    """Return the modules that a request executed, its milliseconds, and those of the processor."""
    connection = http.client.HTTPConnection("127.0.0.1", workerd.ports["importing"], timeout=120)
    cpu_ms, started_ns = usage_of([workerd.pid]).cpu_ms, time.perf_counter_ns()
    connection.request("POST", "/", "\n".join(names))
    answer = connection.getresponse()
    content = answer.read().decode()
    ms, spent = (time.perf_counter_ns() - started_ns) / 1e6, usage_of([workerd.pid]).cpu_ms - cpu_ms
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"an import answered {answer.status}: {content[:1000]}")
    return content.split(), ms, spent


def tables(imports: Sequence[Import], most: int = 20) -> str:
    """Return the imports by package, and those that take most, in Markdown."""
    packages: dict[tuple[str, bool], list[Import]] = {}
    for one in imports:
        packages.setdefault((one.package, one.with_main), []).append(one)
    summed = [
        [
            package,
            "yes" if main else "no",
            str(len(of)),
            f"{sum(x.ms for x in of):.0f}",
            f"{sum(x.cpu_ms for x in of):.0f}",
        ]
        for (package, main), of in sorted(packages.items(), key=lambda item: -sum(x.ms for x in item[1]))
    ]
    costly = sorted(imports, key=lambda one: -one.ms)[:most]
    rows = [[f"`{x.module}`", "yes" if x.with_main else "no", f"{x.ms:.1f}", f"{x.cpu_ms:.1f}"] for x in costly]
    return "\n\n".join(
        (
            markdown(["imports", "with the main module", "modules", "ms", "CPU ms"], summed),
            markdown([f"the {most} that take most", "with the main module", "ms", "CPU ms"], rows),
        )
    )
