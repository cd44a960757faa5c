"""Check a deployment: whether it answers, its stores, schema, index, clock, credentials, keys, and what it gave up.

retain doctor
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, json_of, print_json, run_deployed
from retain.cli.deployed.exit_status import FAILED
from retain.cli.deployed.terminal import one_line
from retain.errors import Forbidden, NotFound, RetainError, Unauthenticated
from retain.schema.database import VERSION
from retain.version import __version__

_SKEW_S = 60.0
"""How far a clock may be off: tokens of Access and of applications are valid for minutes."""

_VERIFIED_PAGES = 20
"""Pages of records that are compared with the index."""
_MOST_KEYS = 1_000

Found = tuple[str, str]
"""What a check found: `ok`, `bad`, or `unknown` when the caller may not see it; and what there is to say."""
Check = Callable[[Deployment], Found]


def doctor(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print what each check found, and fail if one found something bad."""
    bad = False
    for name, (verdict, detail) in _found(deployment):
        bad = bad or verdict == "bad"
        if options.json:
            print_json({"check": name, "verdict": verdict, "detail": detail})
        else:
            print(f"{verdict:<7}  {name:<11}  {one_line(detail)}")
    return FAILED if bad else 0


def _found(deployment: Deployment) -> Iterator[tuple[str, Found]]:
    for name, check in _CHECKS.items():
        try:
            yield name, check(deployment)
        except (Forbidden, NotFound, Unauthenticated) as error:
            yield name, ("unknown", f"this caller may not see it ({error.code})")
        except RetainError as error:
            yield name, ("bad", f"{error.message} ({error.code})")


def _answers(deployment: Deployment) -> Found:
    answer = deployment.anonymously("/healthz")
    version = json_of(answer).get("version")
    if version is None:
        return "bad", f"what answers is not Retain: it answered {answer.status_code}"
    return "ok", f"Retain {version}" + ("" if version == __version__ else f"; this command is of {__version__}")


def _clock(deployment: Deployment) -> Found:
    date = deployment.anonymously("/healthz").headers.get("date", "")
    try:
        off_s = round(parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return "unknown", "its answers have no date"
    return ("ok" if abs(off_s) <= _SKEW_S else "bad"), f"{off_s:+d} s from this machine's"


def _stores(deployment: Deployment) -> Found:
    stores = json_of(deployment.anonymously("/readyz"))["stores"]
    shown = ", ".join(f"{name} {state}" for name, state in stores.items())
    return ("ok" if set(stores.values()) == {"ok"} else "bad"), shown


def _schema(deployment: Deployment) -> Found:
    ready = json_of(deployment.anonymously("/readyz"))
    if ready["stores"]["d1"] != "ok":
        return (
            "bad",
            f"it needs version {ready['schema']}, and D1 says {ready['stores']['d1']}: are migrations applied?",
        )
    return "ok", f"version {ready['schema']}" + ("" if ready["schema"] == VERSION else f"; this command's is {VERSION}")


def _credentials(deployment: Deployment) -> Found:
    try:
        listed = deployment.ask("GET", deployment.agents, query={"limit": "1"})
    except (Unauthenticated, Forbidden, NotFound) as error:
        return "bad", f"{error.message} ({error.code})"
    return ("ok", "accepted") if listed["agents"] else ("bad", "accepted, and there is no agent")


def _closed(deployment: Deployment) -> Found:
    answer = deployment.anonymously(deployment.agents)
    if answer.is_redirect or answer.status_code in (401, 403):
        return "ok", "who has no credentials is refused"
    if deployment.is_local:
        return "ok", "open, as a server in development is to its own machine"
    return "bad", f"who has no credentials is answered with {answer.status_code}"


def _index(deployment: Deployment) -> Found:
    checked, wrong, cursor = 0, Counter[str](), None
    for _ in range(_VERIFIED_PAGES):
        query: dict[str, str] = {} if cursor is None else {"cursor": cursor}
        page = deployment.ask("POST", f"{deployment.tenant}/verify", query=query)
        checked += page["checked"]
        wrong.update({kind: one["count"] for kind, one in page["drift"].items()})
        cursor = page["cursor"]
        if cursor is None:
            break
    shown = f"{checked} records checked" + ("" if cursor is None else ", and there are more")
    return ("bad", f"{shown}: {dict(wrong)}") if wrong else ("ok", shown)


def _keys(deployment: Deployment) -> Found:
    now_ms = time.time() * 1000
    usable = over = 0
    for key in deployment.listed(f"{deployment.tenant}/keys", "keys", {}, _MOST_KEYS):
        expired = key["expires_at_ms"] is not None and key["expires_at_ms"] <= now_ms
        usable += not expired and key["revoked_at_ms"] is None
        over += expired
    return "ok", f"{usable} can be used, {over} have expired"


def _given_up(deployment: Deployment) -> Found:
    query = {"state": "parked", "tenant": deployment.tenant_id, "limit": "1"}
    parked = deployment.ask("GET", "/admin/errors", query=query)["errors"]
    if not parked:
        return "ok", "nothing waits for somebody"
    return "bad", f"something waits for somebody, the last to fail: {parked[0]['stage']} ({parked[0]['code']})"


_CHECKS: dict[str, Check] = {
    "answers": _answers,
    "clock": _clock,
    "stores": _stores,
    "schema": _schema,
    "credentials": _credentials,
    "closed": _closed,
    "index": _index,
    "keys": _keys,
    "given up": _given_up,
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain doctor", description=(__doc__ or "").partition("\n")[0])
    add_target(parser)
    parser.set_defaults(does=doctor)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
