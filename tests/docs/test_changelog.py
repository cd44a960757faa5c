"""The changelog can be read: short entries in the sections of Keep a Changelog, about what exists."""

from __future__ import annotations

import re

from retain.settings import NAMES
from tests.docs.markdown import page, spans
from tools.http_docs import ANSWERED
from tools.paths import PRODUCTION_CONFIG, ROOT

_SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_MAX_LINES = 240
_MAX_CHARACTERS = 300
_SETTING = re.compile(r"[A-Z][A-Z]+_[A-Z_]+")
_ROUTE = re.compile(r"((?:GET|POST|PUT|PATCH|DELETE) /[^\s?…]+)(?:\?\S*)?")


def _changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text()


def _unreleased() -> str:
    return _changelog().partition("\n## Unreleased\n")[2].partition("\n## ")[0]


def test_each_version_has_its_sections_in_the_order_of_the_format() -> None:
    for version in _changelog().split("\n## ")[1:]:
        sections = re.findall(r"^### (.+)$", version, re.MULTILINE)
        kinds = [name for name in sections if not name.startswith("Upgrading from ")]
        assert kinds == [kind for kind in _SECTIONS if kind in kinds], version.partition("\n")[0]
        assert sections[len(sections) - len(kinds) :] == kinds, "how to upgrade comes first"


def test_entries_are_short_and_few_enough_to_be_read() -> None:
    assert [line for line in _changelog().splitlines() if len(line) > _MAX_CHARACTERS] == []
    assert _unreleased().count("\n") <= _MAX_LINES


def test_settings_and_routes_of_the_next_version_exist() -> None:
    code = [span for line in _unreleased().splitlines() for span in spans(line)]
    known = {*NAMES, *_SETTING.findall(PRODUCTION_CONFIG.read_text()), *_SETTING.findall(page("docs/shards.md").text)}
    assert [name for span in code for name in _SETTING.findall(span) if name not in known] == []
    named = [match[1] for span in code if (match := _ROUTE.fullmatch(span))]
    routes = {f"{route.method} {route.path}" for resource in ANSWERED for route in resource.routes}
    assert named
    assert [name for name in named if name.replace("/v1/tenants/", "/admin/tenants/") not in routes] == []
