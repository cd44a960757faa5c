"""Make the generated parts of the clients, and build the clients if asked to."""

from __future__ import annotations

import argparse

from tools.clients.build import build
from tools.clients.generate import generate
from tools.paths import ROOT

parser = argparse.ArgumentParser(prog="python -m tools.clients", description=__doc__)
parser.add_argument("--build", action="store_true", help="build what is published into .cache/clients/built")
options = parser.parse_args()
for made in [*generate(), *(build() if options.build else ())]:
    print(made.relative_to(ROOT))
