"""Print what a tenant spent, by day, agent, purpose and model, and the sum.

retain costs --since 2026-11-01 --agent sdr
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import get_args

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, Json, add_target, print_json, run_deployed
from retain.cli.deployed.runs import positive
from retain.cli.deployed.terminal import cut, one_line, width
from retain.tenants.model_use import Purpose

_PAGE = 200
_MOST = 10_000


def list_costs(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print costs, the last day first, a line for each entry, and their sum below."""
    asked = {
        "limit": str(min(options.limit, _PAGE)),
        "agent_type": options.agent,
        "purpose": options.purpose,
        "since": options.since,
        "until": options.until,
    }
    query = {name: value for name, value in asked.items() if value is not None}
    cells = width()
    entries = []
    for entry in deployment.listed(f"{deployment.tenant}/costs", "costs", query, options.limit):
        entries.append(entry)
        print_json(entry) if options.json else print(cut(_line_of(entry), cells))
    if entries and not options.json:
        print(_sum_of(entries))
    return 0


def _line_of(entry: Json) -> str:
    count, counted = (entry["runs"], "run") if entry["calls"] is None else (entry["calls"], "call")
    cost = entry["cost"]
    spent = "no price" if cost is None else f"{_amount(cost['value'])} {cost['currency']}"
    who = f"{entry['agent_type'] or '-'}  {entry['purpose']}  {entry['model']}"
    return one_line(f"{entry['day']}  {who}  {count} {counted}{'s' * (count != 1)}  {_tokens([entry])}  {spent}")


def _sum_of(entries: Sequence[Json]) -> str:
    """Return the sums on a line. What has no price is in no amount, and said."""
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    for cost in (entry["cost"] for entry in entries if entry["cost"] is not None):
        amounts[cost["currency"]] += Decimal(str(cost["value"]))
    spent = [f"{_amount(value)} {currency}" for currency, value in amounts.items()]
    unpriced = sum(entry["cost"] is None for entry in entries)
    left_out = [f"{unpriced} of {len(entries)} without a price"] if unpriced else []
    return one_line(f"sum  {_tokens(entries)}  {'  '.join(spent + left_out)}")


def _tokens(entries: Iterable[Json]) -> str:
    """Return the tokens of runs, of what was learned from them and of other calls, as read (from a cache) and written."""
    read = cached = written = 0
    for entry in entries:
        read += entry["input_tokens"] + entry["learning_input_tokens"]
        cached += entry["cached_input_tokens"] + entry["learning_cached_input_tokens"]
        written += entry["output_tokens"] + entry["learning_output_tokens"]
    return f"{read} in{f' ({cached} cached)' if cached else ''}, {written} out"


def _amount(value: float | Decimal) -> str:
    return f"{value:.4f}"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain costs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agent", help="only this agent's")
    parser.add_argument("--purpose", choices=get_args(Purpose), help="only what was spent for this")
    parser.add_argument("--since", help="only of this day and later ones, in UTC: 2026-11-01")
    parser.add_argument("--until", help="only of days before this one")
    parser.add_argument("--limit", type=positive, default=_MOST, help="most entries to print (10000)")
    add_target(parser)
    parser.set_defaults(does=list_costs)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
