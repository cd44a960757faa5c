"""Measure the proxy, then runs and recall: `make bench`."""

from __future__ import annotations

import subprocess
import sys

for module in ("benchmarks.proxy", "benchmarks.agent"):
    print(f"\n{module}", flush=True)
    subprocess.run([sys.executable, "-m", module], check=True)
