"""The results, as the table of docs/testing.md."""

from __future__ import annotations

from collections.abc import Sequence

from tools.mutants.session import Judged
from tools.mutants.wires import Wires


def explanation(result: Judged, wires: Wires) -> str | None:
    """Return why no test sees a mutant, None when nobody has explained it."""
    for one in wires.explained:
        changed = (one.file, one.before, one.after) == (result.mutant.file, result.before, result.after)
        if changed and one.under in ("", result.under):
            return one.why
    return None


def unexplained(results: Sequence[Judged], wires: Wires) -> list[Judged]:
    """Return the survivors that nobody has explained."""
    return [one for one in results if one.outcome == "survived" and explanation(one, wires) is None]


def table(results: Sequence[Judged], wires: Wires) -> str:
    """Return a row for each wire: how many mutants it has, how many were killed, survived and are explained."""
    lines = ["| wire | mutants | killed | survived | explained |", "|---|---:|---:|---:|---:|"]
    names = [wire.name for wire in wires.wires if any(one.wire == wire.name for one in results)]
    for name in [*names, "all"]:
        own = [one for one in results if name in (one.wire, "all")]
        survived = [one for one in own if one.outcome == "survived"]
        explained = sum(explanation(one, wires) is not None for one in survived)
        share = (len(own) - len(survived)) / len(own) if own else 1.0
        killed = f"{len(own) - len(survived)} ({share:.1%})"
        lines.append(f"| {name} | {len(own)} | {killed} | {len(survived)} | {explained} |")
    return "\n".join(lines)


def explanations(wires: Wires) -> str:
    """Return a row for each mutant that is explained, as docs/testing.md has them."""
    lines = ["| file | is | becomes | why no test notices |", "|---|---|---|---|"]
    lines += [
        f"| `{one.file}` | {_code(f'{one.under} {one.before}'.strip())} | {_code(one.after)} | {one.why} |"
        for one in wires.explained
    ]
    return "\n".join(lines)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else "nothing"
