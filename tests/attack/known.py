"""What the attacker knows: names and ids of both tenants, and cursors. Never a word that the victim keeps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from random import Random
from typing import Any

from retain.json_text import read_json
from tests.attack.tenants import AGENTS, DATASETS, INSTANCES, KINDS, OWN_AGENT, SECRET_AGENT, SUBJECT, TOOL, USERS

ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
_DIGEST = re.compile(r"\b[0-9a-f]{32}\b")
_MOST = 60
"""How many values of one name are kept."""
_NAMES: dict[str, tuple[str, ...]] = {
    "agent_type": (*AGENTS, OWN_AGENT, SECRET_AGENT),
    "version": ("1", "2", "3"),
    "instance_id": (*INSTANCES, *USERS),
    "user": USERS,
    "user_id": USERS,
    "name": DATASETS,
    "dataset": DATASETS,
    "house": ("orders",),
    "service": ("shop",),
    "session": ("s-1",),
    "kind": KINDS,
    "subject": (SUBJECT,),
    "tool_name": (TOOL,),
}
_GIVEN = re.compile(r"/(runs|reindex|erase|ingest|backups|memories|similar|webhooks|attachments)(/|\?|$)")
_PARAMETERS = {
    "memories": "id",
    "similar": "id",
    "ingest": "job_id",
    "reindex": "job_id",
    "erase": "receipt_id",
    "backups": "backup_id",
    "webhooks": "webhook_id",
    "attachments": "attachment_id",
}


@dataclass
class Known:
    """What is known of one tenant.

    named: values by the path parameter that takes them. cursors: by the path of the list, without its query. hidden: ids
    that are not learned.
    """

    rng: Random
    named: dict[str, list[str]] = field(default_factory=lambda: {name: list(some) for name, some in _NAMES.items()})
    cursors: dict[str, list[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    hidden: frozenset[str] = frozenset()

    def learn(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Take ids, cursors and lines of an export from an answer."""
        text = body.decode("utf-8", "replace")
        kind = _GIVEN.search(path)
        parameter = "run_id" if kind is None or kind[1] == "runs" else _PARAMETERS[kind[1]]
        for found in ULID.findall(text)[:40]:
            if found not in self.hidden:
                self._add(self.named.setdefault(parameter, []), found)
                self._add(self.named.setdefault("any", []), found)
        for found in _DIGEST.findall(text)[:5]:
            self._add(self.named.setdefault("job_id", []), found)
        if "/export" in path:
            for line in text.splitlines()[:50]:
                self._add(self.lines, line)
        for cursor in _cursors(text):
            self._add(self.cursors.setdefault(re.sub(r"\?.*", "", path).rpartition("/")[2], []), cursor)

    def hide(self, part: Random) -> None:
        """Forget half of the ids, so that an answer which has one of them shows where it came from.

        Not those of webhooks, of which there are few: their messages name hidden runs.
        """
        few = self.named.get("webhook_id", [])
        every = sorted({value for name, some in self.named.items() if name in _BY_ID for value in some}.difference(few))
        self.hidden = frozenset(one for one in every if ULID.fullmatch(one) and part.random() < 0.5)
        for name, some in self.named.items():
            self.named[name] = [value for value in some if value not in self.hidden]
        self.lines = [line for line in self.lines if not self.hidden & set(ULID.findall(line))]

    def one(self, name: str) -> str | None:
        """Return one value for a path parameter, if one is known."""
        some = self.named.get(name)
        return self.rng.choice(some) if some else None

    def _add(self, some: list[str], value: str) -> None:
        if value in some:
            return
        if len(some) < _MOST:
            some.append(value)
        else:
            some[self.rng.randrange(_MOST)] = value


_BY_ID = ("any", "id", "run_id", "job_id", "receipt_id", "backup_id")


def _cursors(text: str) -> list[str]:
    if '"cursor"' not in text:
        return []
    try:
        content: Any = read_json(text) if text.startswith("{") and "\n" not in text else None
        content = content if content is not None else json.loads(text.splitlines()[-1])
    except ValueError:
        return []
    cursor = content.get("cursor") if isinstance(content, dict) else None
    return [cursor] if isinstance(cursor, str) else []
