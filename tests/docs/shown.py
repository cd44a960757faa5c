"""Whether an answer is what a page shows of it: `…` stands for anything, and fields and lines may be left out."""

from __future__ import annotations

import json
import re
from typing import Any


def shows(shown: str, answer: str, language: str) -> bool:
    """Return whether a block of a page, in `json` or `text`, shows the answer truthfully.

    json: every field that is shown is there, and lists have as many items as are shown. text: every line that is shown is
    found, in this order; it may be a part of a line.
    """
    if language == "json":
        try:
            found = json.loads(answer)
        except json.JSONDecodeError:
            return False
        return _fits(json.loads(shown), found)
    lines = iter(answer.splitlines())
    return all(any(_pattern(wanted).search(line) for line in lines) for wanted in shown.splitlines())


def _fits(shown: Any, found: Any) -> bool:
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(
            name in found and _fits(value, found[name]) for name, value in shown.items()
        )
    if isinstance(shown, list):
        return (
            isinstance(found, list)
            and len(shown) == len(found)
            and all(_fits(*pair) for pair in zip(shown, found, strict=True))
        )
    if isinstance(shown, str):
        return isinstance(found, str) and _pattern(shown).fullmatch(found) is not None
    return type(shown) is type(found) and bool(shown == found)


def _pattern(shown: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in re.split(r" *… *", shown.strip())), re.DOTALL)
