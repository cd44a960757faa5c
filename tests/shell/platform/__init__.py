"""What only workerd has, rebuilt on the host: the modules `js`, `pyodide` and `workers`, and the bindings of `env`.

With it the shell (entry, assembly, bindings, adapters, the Durable Object) runs in the process of a test, in milliseconds.
Each stand-in offers what `typings/` declares and no more, with the same conversions: what the shell forgets to convert
fails here as it fails there. That the stand-ins behave like workerd is proved by the ports' contract suites, which pass
on both (`tests/shell/test_contracts.py`, `tests/workerd/test_conformance.py`).
"""

from __future__ import annotations

import sys
from types import ModuleType

from tests.shell.platform import ffi, js, sdk, webloop


def install() -> None:
    """Let `import js`, `import pyodide.ffi` and `import workers` find the stand-ins. Idempotent."""
    package = ModuleType("pyodide")
    vars(package).update(ffi=ffi, webloop=webloop)
    modules = {"js": js, "pyodide": package, "pyodide.ffi": ffi, "pyodide.webloop": webloop, "workers": sdk}
    sys.modules.update(modules)
