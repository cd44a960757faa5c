"""A Worker that imports the modules that the body of a request names."""

from __future__ import annotations

import importlib
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from typing import Any
from zipimport import zipimporter

import js  # noqa: TID251

from workers import WorkerEntrypoint  # noqa: TID251

_executed: list[str] = []


def _recording(loader: Any) -> None:
    """Note the modules that a loader has executed: what a module imports is noted before it."""
    execute = loader.exec_module

    def recorded(self: Any, module: Any) -> None:
        execute(self, module)
        _executed.append(module.__name__)

    loader.exec_module = recorded


for _loader in (SourceFileLoader, zipimporter, ExtensionFileLoader):
    _recording(_loader)


class Default(WorkerEntrypoint):
    """The Worker's entrypoint."""

    async def fetch(self, request: Any) -> Any:
        """Import the modules; answer with the names of those that were executed, in order."""
        _executed.clear()
        for name in (await request.text()).split():
            importlib.import_module(name)
        return js.Response.new("\n".join(_executed))
