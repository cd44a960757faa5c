"""Drive and measure the console's views in a real Chromium, over a tenant with many memories and runs on the real workerd.

    python -m benchmarks.console [--records 10000] [--runs 2000] [--events 5000]

A view's time is from its address being opened until its content is shown, the median of its rounds. The runs are copies of a
real one, written into the local D1's file; the memories are stored through the server. Of the long run also how long a frame
takes while it is scrolled, and how many rows the page holds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import Page

from tests.console.at_size import drive, views
from tests.e2e.local_state import LocalState
from tests.support.browser import browsing
from tests.support.large_tenant import large_tenant
from tools.local_server import serving

ROUNDS = 7
_SCROLLED = """async () => {
  const spent = [];
  let last = performance.now();
  for (let step = 1; step <= 60; step += 1) {
    scrollTo(0, (document.documentElement.scrollHeight * step) / 60);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    spent.push(now - last);
    last = now;
  }
  return spent.toSorted((one, other) => one - other);
}"""


def main() -> None:
    """Fill the tenant, drive every view, measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=5_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        with httpx.Client(base_url=server.base_url, timeout=120) as client:
            state = LocalState(Path(folder))
            tenant = large_tenant(client, state, "default", **vars(options))
        print(f"{tenant.record_ms:.1f} ms a record")
        with browsing() as browser:
            browser.do(f"open {server.base_url}/console#/{tenant.tenant_id}")
            tab = browser.tab
            drive(tab, server.base_url, tenant)
            assert browser.errors == [], browser.errors
            print("| view | ms until its content is shown |\n|---|---:|")
            for view in views(tenant):
                url = f"{server.base_url}/console#/{tenant.tenant_id}/{view.address}"
                spent = [_opened(tab, url, view.shown) for _ in range(ROUNDS)]
                print(f"| {view.name} | {statistics.median(spent):.0f} |")
            _scroll(tab, f"{server.base_url}/console#/{tenant.tenant_id}/runs/{tenant.long_id}", tenant.steps)


def _opened(tab: Page, url: str, shown: str) -> float:
    tab.goto("about:blank")
    started = time.perf_counter()
    tab.goto(url)
    tab.locator(shown).first.wait_for()
    return (time.perf_counter() - started) * 1000


def _scroll(tab: Page, url: str, steps: int) -> None:
    _opened(tab, url, f".virtual li[aria-setsize='{steps}']")
    frames = tab.evaluate(_SCROLLED)
    rows = tab.locator(".virtual > li").count()
    usual, worst = frames[len(frames) // 2], frames[-2]
    print(f"scrolling {steps} rows: {usual:.0f} ms a frame, {worst:.0f} at worst; {rows} rows in the page")


if __name__ == "__main__":
    main()
