"""Run the command without its script: `python -m retain.cli`."""

from __future__ import annotations

import sys

from retain.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
