"""The browser of the tests: Debian's Chromium, found or installed.

`python -m tools.chromium` installs it where this user may, and says how to where not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

_INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium")
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """Return the path of Chromium: `$CHROMIUM`, or the one that is installed; None if there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def how_to_install() -> str:
    """Return what somebody has to type to have it."""
    return f"sudo {' '.join(_INSTALL)} (or set CHROMIUM to the path of a Chromium)"


def main() -> int:
    """Install Chromium if it is absent and this user may; return 0 also where it stays absent."""
    if executable() is None and _may_install():
        done = subprocess.run(_INSTALL, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:  # the lists of packages may be absent or old
            subprocess.run(["apt-get", "update", "--quiet"], check=False, stdout=subprocess.DEVNULL)
            subprocess.run(_INSTALL, check=False, stdout=subprocess.DEVNULL)
    if executable() is None:
        print(f"There is no Chromium: tests of pages are skipped. {how_to_install()}", file=sys.stderr)
    return 0


def _may_install() -> bool:
    return shutil.which("apt-get") is not None and os.geteuid() == 0


if __name__ == "__main__":
    sys.exit(main())
