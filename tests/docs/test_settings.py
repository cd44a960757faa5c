"""Every variable and secret that Retain reads is documented, and is in the production configuration."""

from __future__ import annotations

import re

from retain.settings import NAMES
from tests.docs.markdown import page, spans
from tools.paths import PRODUCTION_CONFIG
from tools.stage import read_config

_SECRETS = re.compile(r"^# Secrets, set with `wrangler secret put`: ((?:.|\n# )*)$", re.MULTILINE)
_NAME = re.compile(r"[A-Z][A-Z_]+")


def test_every_name_is_documented() -> None:
    deployment = page("docs/deployment.md")
    documented = {name for row in deployment.rows() for name in spans(row[0])}
    assert {name for name in documented if _NAME.fullmatch(name)} == set(NAMES)


def test_every_name_is_in_the_production_configuration_as_a_variable_or_as_a_secret() -> None:
    secrets = _SECRETS.search(PRODUCTION_CONFIG.read_text())
    assert secrets is not None
    named = set(re.findall(r"\b[A-Z][A-Z_]+\b", secrets[1]))
    variables = set(read_config(PRODUCTION_CONFIG)["vars"])
    assert variables & named == set()
    assert variables | named == set(NAMES)
