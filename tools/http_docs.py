"""Write the routes of docs/http.md from the route tables, or check that the page is up to date.

    python -m tools.http_docs [--write]

Only the text between the two markers is generated; the prose around it is kept.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from retain.admin.routes import ROUTER as ADMIN
from retain.agent_memory.routes import ROUTER as AGENT_MEMORY
from retain.agents.front_ends.chat_routes import ROUTER as CHAT
from retain.agents.routes import ROUTER as AGENTS
from retain.gateway.routes import ROUTER as GATEWAY
from retain.http import MAX_BODY_BYTES
from retain.routing import health, protected_resources
from retain.routing.parameters import BY_NAME
from retain.routing.route import ErrorGroup, Resource, Route

PAGE = ROOT / "docs" / "http.md"
ERRORS = ROOT / "docs" / "errors.md"
BEGIN = "<!-- routes: written by `python -m tools.http_docs --write` -->\n"
END = "<!-- end of the routes -->\n"
WIDTH = 150

RESOURCES: tuple[Resource[Any], ...] = (
    *health.ROUTER.resources,
    *protected_resources.ROUTER.resources,
    *GATEWAY.resources,
    *AGENTS.resources,
    *ADMIN.resources,
)
"""Every resource of Retain's own interface."""
ANSWERED: tuple[Resource[Any], ...] = (*RESOURCES, *CHAT.resources, *AGENT_MEMORY.resources)
"""Every resource that the Worker serves: also those of an interface that others describe."""


def written(page: str, errors: str) -> str:
    """Return the page with up-to-date routes. errors: the page of the error codes, to which each code is linked."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError("the page has no pair of markers for the routes")
    sections = _sections(errors)
    blocks = [_overview(), _parameters()]
    for resource in ANSWERED:
        blocks.append(f"### {resource.title}\n")
        blocks += [block for route in resource.routes for block in _route(route, sections)]
    return f"{before}{BEGIN}\n" + "\n".join(blocks) + f"\n{END}{after}"


def _overview() -> str:
    routes = [
        (f"[`{route.method} {route.path}`](#{_anchor(f'{route.method} {route.path}')})", route.summary)
        for resource in ANSWERED
        for route in resource.routes
    ]
    return _table(("route", "what it does"), routes)


def _parameters() -> str:
    """Return the default grammars of the path parameters."""
    grammars: dict[str, list[str]] = {}
    for name, parameter in BY_NAME.items():
        grammars.setdefault(parameter.pattern, []).append(f"`{name}`")
    rows = [(", ".join(names), f"`{pattern}`") for pattern, names in grammars.items()]
    return _table(("path parameter, unless its route says otherwise", "matches"), rows)


def _route(route: Route[Any], sections: dict[str, str]) -> Iterator[str]:
    yield f"#### `{route.method} {route.path}`\n"
    yield f"{route.summary}\n"
    yield _table(("", ""), list(_rows(route)))
    if route.errors:
        text = f"Errors: {', '.join(_error(error, sections) for error in route.errors)}."
        lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
        yield "\n".join(lines) + "\n"


def _rows(route: Route[Any]) -> Iterator[tuple[str, str]]:
    yield "operation", f"`{route.name}`"
    yield "who", route.guard if route.needs is None else f"Access: {_place(route)}"
    for name, parameter in route.parameters.items():
        if parameter != BY_NAME.get(name):
            yield f"path `{name}`", f"`{parameter.pattern}`"
    for name, what in route.headers.items():
        yield f"header `{name}`", what
    if route.query is not None and issubclass(route.query.model, BaseModel):
        for name, field in route.query.model.model_fields.items():
            default = (
                "" if field.default in (None, "", False) or field.default_factory else f"; {field.default} if absent"
            )
            yield f"query `{name}`", f"{field.description}{default}"
    if route.takes:
        limit = "" if route.max_body_bytes == MAX_BODY_BYTES else f"; at most {route.max_body_bytes >> 20} MiB"
        yield "body", f"{route.takes}{limit}"
    for answer in route.answers:
        yield str(answer.status), answer.what


def _place(route: Route[Any]) -> str:
    """Return the role that a route needs, and where."""
    where = {
        "path": "of the tenant",
        "body": "of the tenant in the body",
        "own": "of the tenants that it answers with",
        "deployment": "of every tenant",
    }
    return f"{route.needs} {where[route.tenant_in]}"


def _error(error: str | ErrorGroup, sections: dict[str, str]) -> str:
    return error.what if isinstance(error, ErrorGroup) else f"[`{error}`](errors.md#{sections[error]})"


def _sections(errors: str) -> dict[str, str]:
    """Return for each code the anchor of the first section that describes it."""
    found: dict[str, str] = {}
    anchor = ""
    for line in errors.splitlines():
        if line.startswith("#"):
            anchor = _anchor(line.lstrip("# "))
        elif line.startswith("| `"):
            for code in re.findall(r"`(\w+)`", line.split("|")[1]):
                found.setdefault(code, anchor)
    return found


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the page. Returns 1 when the page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.http_docs", description="the routes of docs/http.md")
    parser.add_argument("--write", action="store_true", help="write the page instead of checking it")
    options = parser.parse_args(arguments)
    page = PAGE.read_text()
    new = written(page, ERRORS.read_text())
    if options.write:
        PAGE.write_text(new)
    elif new != page:
        print("docs/http.md does not match the route tables: run python -m tools.http_docs --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
