"""What the console decides without a server: addresses, the rows of a timeline, the changes of a memory."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tools.console import CONSOLE
from tools.openapi.document import operations
from tools.openapi.operation import public_path
from tools.paths import NODE_BIN

HERE = Path(__file__).parent
_MODULES = (
    *("api.ts", "asof.tsx", "form.tsx", "loading.tsx", "place.ts", "shown.ts", "title.ts", "virtual.tsx"),
    "people/lanes.tsx",
    *("memory/fields.tsx", "memory/history.tsx", "memory/memories.tsx", "memory/events.ts", "memory/source.tsx"),
    *("recall/add-case.tsx", "recall/parts.tsx", "recall/recall.tsx"),
    *("runs/prompt.tsx", "runs/rows.tsx", "runs/steps.ts", "runs/timeline.tsx"),
)


def test_its_decisions(tmp_path: Path) -> None:
    bundle = tmp_path / "pure.mjs"
    entry = "\n".join(f'export * from "./{name}";' for name in _MODULES)
    options = ["--bundle", "--format=esm", f"--tsconfig={CONSOLE / 'tsconfig.json'}", f"--outfile={bundle}"]
    command: list[str | Path] = [NODE_BIN / "esbuild", *options, "--sourcefile=pure.ts", "--loader=ts"]
    subprocess.run(command, input=entry, text=True, cwd=CONSOLE / "src", check=True)
    every = [(public_path(route), route.path) for route in operations().values()]
    assert any(documented != real for documented, real in every)
    environment = {**os.environ, "BUNDLE": str(bundle), "OPERATIONS": json.dumps(every)}
    test: list[str | Path] = [NODE_BIN / "node", "--test", "--test-reporter=tap", HERE / "console.test.mjs"]
    done = subprocess.run(test, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.partition("# pass ")[2].split()[0]) >= 25
