"""Values for the fields of a request: mostly valid ones that name the victim's things, sometimes hostile texts."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import quote

from retain.identifiers import new_id
from tests.attack.known import Known
from tests.attack.tenants import (
    AGENTS,
    ATTACKER,
    DATASETS,
    OWN_AGENT,
    SECRET_AGENT,
    SUBJECT,
    TOOL,
    VICTIM,
    order,
)

Schema = Mapping[str, Any]
NOW_MS = 1_700_000_000_000
_WIDE = VICTIM.translate({ord(letter): ord(letter) + 0xFEE0 for letter in "temab-"})

HOSTILE: tuple[str, ...] = (
    VICTIM,
    VICTIM.upper(),
    f"{VICTIM} ",
    f"{VICTIM}\u200b",
    f"{VICTIM}\0",
    f"{VICTIM}.",
    f"{VICTIM[:-1]}%",
    f"{VICTIM[:-1]}_",
    f"{ATTACKER}-*",
    _WIDE,
    "team\u2010b",
    "t\u0435am-b",
    "team-b\u0301",
    quote(VICTIM, safe="").replace("-", "%2D"),
    "%74eam-b",
    "%2574eam-b",
    f"{ATTACKER}/../{VICTIM}",
    f"../{VICTIM}",
    f"..%2F{VICTIM}",
    f"..%252f{VICTIM}",
    f"{ATTACKER}:{VICTIM}",
    f"{VICTIM}:sdr:desk",
    f"sdr:{VICTIM}:desk",
    f"agent.sdr:{VICTIM}",
    f"agent_memory_semantic:{VICTIM}",
    f"agent_working:{VICTIM}:sdr:desk:note",
    f"gateway_tool:{VICTIM}:{TOOL}",
    f"tenants/{VICTIM}/",
    f"{ATTACKER}' OR tenant_id = '{VICTIM}",
    f"' OR '1'='1' -- {VICTIM}",
    f'" OR content:* -- {VICTIM}',
    f"{ATTACKER}\n{VICTIM}",
    f"{ATTACKER}\x1f{VICTIM}",
    f"{ATTACKER}|{VICTIM}",
    f"{ATTACKER}\\{VICTIM}",
    f"$.{VICTIM}",
    f"{{{{tenant:{VICTIM}}}}}",
    "*",
    "%",
    "_" * 6,
    "",
    ".",
    "..",
    "null",
    "undefined",
    "-1",
    "NaN",
    "0" * 26,
    "7" + "Z" * 25,
    "a" * 300,
    "\ud7ff\U0001f600" * 40,
)
_WORDS = (
    "vault code",
    "emil",
    "channel",
    "reserve key",
    "refund",
    "Emil answered",
    "plain1",
    SUBJECT,
    "sister",
    VICTIM,
)
_METADATA_KEYS = ("topic", "note", "level", "tenant_id", "scope_id", "agent_type", "namespace", "a.b", "$x")


class Values:
    """Draws values. mine, theirs: what the attacker knows of both tenants. listed: what the route lists, for its cursors."""

    def __init__(self, rng: Random, mine: Known, theirs: Known) -> None:
        self.rng = rng
        self.mine = mine
        self.theirs = theirs
        self.listed = ""
        self._by_name: Mapping[str, Callable[[], object]] = {
            "tenant": lambda: ATTACKER,
            "agent_type": lambda: rng.choice(AGENTS),
            "agent": lambda: rng.choice(AGENTS),
            "house": lambda: rng.choice(("orders", "orders", VICTIM, "agent")),
            "user": lambda: self.known("user"),
            "user_id": lambda: self.known("user"),
            "dataset": lambda: rng.choice((*DATASETS, "third")),
            "name": lambda: rng.choice(("Ann", "Bob", VICTIM)),
            "locale": lambda: rng.choice(("en-GB", "de", "pt-BR")),
            "timezone": lambda: rng.choice(("Europe/Berlin", "UTC", "America/Lima")),
            "cursor": self.cursor,
            "head": lambda: f"{rng.randrange(9)}:{rng.getrandbits(256):064x}",
            "limit": lambda: str(rng.choice((1, 2, 50, 200))),
            "after": lambda: str(rng.randrange(90)),
            "since_ms": lambda: str(NOW_MS - rng.randrange(10**9)),
            "until_ms": lambda: str(NOW_MS + rng.randrange(10**9)),
            "valid_at_ms": lambda: NOW_MS + rng.randrange(-(10**9), 10**9),
            "as_of_ms": lambda: NOW_MS - rng.randrange(10**7),
            "valid_from_ms": lambda: NOW_MS - rng.randrange(10**9),
            "valid_to_ms": lambda: NOW_MS + rng.randrange(10**9),
            "expires_at_ms": lambda: NOW_MS + 10**7 + rng.randrange(10**9),
            "last_event_id": lambda: f"{self.known('run_id')}.{rng.randrange(20)}",
            "status": lambda: rng.choice(
                ("pending", "delivered") if self.listed == "deliveries" else ("completed", "failed")
            ),
            "url": lambda: rng.choice(("https://hooks.example/mine", "https://hooks.example")),
            "query": lambda: f"{rng.choice(_WORDS)} {rng.choice(_WORDS)}",
            "content": lambda: f"The {rng.choice(_WORDS)} of {rng.choice(_WORDS)} is number {rng.randrange(400)}.",
            "subject": lambda: rng.choice((SUBJECT, VICTIM, "ann", "bob")),
            "predicate": lambda: rng.choice(("knows", "lives_in", "tenant_id")),
            "object": lambda: rng.choice(("Oslo", VICTIM, "blue")),
            "metadata": self.metadata,
            "filter": self.conditions,
            "confidence": rng.random,
            "importance": rng.random,
            "min_score": lambda: rng.choice((0, 0.0, 0.3)),
            "score": rng.random,
            "top_k": lambda: rng.randint(1, 50),
            "max_memories_per_user": lambda: rng.choice((None, 5000)),
            "input": self.order,
            "instance_id": lambda: self.known("instance_id"),
            "title": lambda: rng.choice((None, f"About {VICTIM}")),
            "value": lambda: rng.choice((f"of {VICTIM}", "1", "x" * 9000)),
            "ttl_s": lambda: rng.choice((60, 3600)),
            "call": lambda: f"{rng.randrange(3)}.{rng.randrange(3)}",
            "conversation": lambda: rng.choice(("c-1", "c-2", f"c-{VICTIM}")),
            "messages": self.messages,
            "memory": lambda: self.known("id"),
            "thing": lambda: self.known("id"),
            "key": lambda: self.known("id"),
            "prefix": lambda: rng.choice((f"agent_working:{ATTACKER}", f"agent_working:{VICTIM}", "agent", "gateway_")),
            "decision": lambda: rng.choice(("APPROVE", "DECLINE")),
            "code": lambda: "interrupted",
            "run_id": lambda: self.known("run_id"),
            "id": lambda: self.known("id"),
            "target": self.target,
            "cases": self.cases,
            "version": lambda: rng.randint(1, 4),
            "thresholds": dict,
            "session_id": lambda: "s-1",
        }

    def hostile(self) -> str:
        """Return a text that was made to be mistaken for something of the victim."""
        return self.rng.choice(HOSTILE)

    def known(self, name: str) -> str:
        """Return a value of a kind: the victim's or the attacker's own, sometimes a new one or one of another kind."""
        drawn = self.rng.random()
        side = self.theirs if drawn < 0.55 else self.mine
        value = side.one(name) if drawn < 0.93 else None
        if value is None and drawn < 0.96:
            value = side.one("any")
        return value or new_id()

    def cursor(self) -> str:
        """Return a position in some list, of either tenant: as it was given, or with the victim's name in it."""
        side = self.theirs if self.rng.random() < 0.6 else self.mine
        some = side.cursors.get(self.listed, []) if self.rng.random() < 0.8 else []
        some = some or [value for values in side.cursors.values() for value in values]
        value = self.rng.choice(some) if some else "records.0"
        return value if self.rng.random() < 0.8 else self.tampered(value)

    def tampered(self, text: str) -> str:
        """Return a position that was changed: in what it encodes, where it encodes something."""
        way = self.rng.randrange(5)
        if way == 0:
            return text.replace(ATTACKER, VICTIM)
        if way == 1:
            return f"{text}.{VICTIM}"
        if way == 2:
            return f"{text[: self.rng.randrange(len(text) + 1)]}{self.known('any')}"
        try:
            decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        except ValueError:
            decoded = json.dumps([VICTIM, self.known("any")])
        changed = decoded.replace(ATTACKER, VICTIM) if way == 3 else decoded.replace('"', '"' + VICTIM, 1)
        return base64.urlsafe_b64encode(changed.encode()).decode().rstrip("=")

    def metadata(self) -> dict[str, object]:
        """Return metadata, some of which is named as the columns and filters of the memory are."""
        keys = self.rng.sample(_METADATA_KEYS[:7], self.rng.randrange(3))
        return {key: self.rng.choice((VICTIM, "vault", 3, True)) for key in keys}

    def conditions(self) -> dict[str, object]:
        """Return conditions on metadata: some that each record meets, some joined, some alone and some with others."""
        rng = self.rng
        made: dict[str, object] = {}
        for key in rng.sample(_METADATA_KEYS[: 7 if rng.random() < 0.9 else None], rng.choice((0, 1, 1, 2))):
            made[key] = self._criterion()
        drawn = rng.random()
        if drawn < 0.05:
            made["$or"] = [{"tenant_id": VICTIM}]
        elif drawn < 0.7:
            made = self._alternatives() if rng.random() < 0.7 else {**made, **self._alternatives()}
        return made

    def _alternatives(self) -> dict[str, object]:
        """Return joined conditions. Most records of both tenants meet some of them."""
        rng = self.rng
        inner: list[dict[str, object]] = [
            {key: self._criterion()}
            for key in rng.choices(_METADATA_KEYS[: 3 if rng.random() < 0.9 else 7], k=rng.choice((1, 2, 2)))
        ]
        met: Sequence[dict[str, object]] = ({"topic": "vault"}, {"level": {"$gte": 1}}, {"level": {"$ne": 1}})
        inner.append(rng.choice((*met, *met, {"$or": inner[:2]}, {"$and": inner[:1]})))
        rng.shuffle(inner)
        return {"$or" if rng.random() < 0.8 else "$and": inner}

    def _criterion(self) -> object:
        return self.rng.choice(
            (
                VICTIM,
                "vault",
                {"$ne": ATTACKER},
                {"$in": [VICTIM, "vault"]},
                {"$in": ["vault", None]},
                {"$nin": [ATTACKER]},
                {"$gte": 1},
                {"$eq": VICTIM},
                None,
            )
        )

    def order(self) -> str:
        """Return the input of a run, whose model calls tools with hostile arguments."""
        rng = self.rng
        tools: Sequence[tuple[str, dict[str, object]]] = (
            ("recall_memory", {"query": self.field("query", {}), "top_k": 20, "min_score": 0}),
            ("recall_memory", {"query": self.field("query", {}), "tenant_id": VICTIM}),
            ("store_memory", {"content": self.field("content", {}), "metadata": self.metadata()}),
            ("store_memory", {"content": self.field("content", {}), "tenant_id": VICTIM}),
            ("forget_memory", {"ids": [self.known("id")]}),
            ("learn_fact", {"subject": SUBJECT, "predicate": "knows", "object": VICTIM}),
            ("set_working_memory", {"key": rng.choice(("note", f"x:{VICTIM}:desk:note")), "value": VICTIM}),
            ("get_working_memory", {}),
            ("delegate", {"agent": rng.choice(AGENTS), "input": order(say="-")}),
            (TOOL, {"order_id": self.known("id")}),
        )
        return order(*rng.sample(tools, rng.choice((0, 1, 1, 2))), say=rng.choice((None, "APPROVE")))

    def messages(self) -> list[dict[str, str]]:
        """Return messages of a conversation to ingest."""
        texts = ("I moved to Oslo.", "My name is Emil.", f"I work at {VICTIM}.", "I am a vegetarian.")
        count = self.rng.randint(1, 3)
        return [{"speaker": self.rng.choice(("Ann", "Bob")), "content": self.rng.choice(texts)} for _ in range(count)]

    def target(self) -> dict[str, object]:
        """Return what a dataset evaluates."""
        if self.rng.random() < 0.5:
            return {"agent": "sdr"}
        return {"recall": {"agent_type": "sdr", "filter": {"tenant_id": VICTIM}}}

    def definition(self) -> dict[str, object]:
        """Return the definition of an agent: a valid one, mostly with something in it that is named as the victim's."""
        rng = self.rng
        texts = ("Say -.", f"You work for {VICTIM}.", self.hostile() or "-", f"Name {self.known('id')}.")
        made: dict[str, object] = {"description": rng.choice(texts), "instructions": rng.choice(texts)}
        named = (
            ("delegates", [rng.choice((OWN_AGENT, SECRET_AGENT, *AGENTS))]),
            ("tools", [rng.choice((TOOL, f"{VICTIM}:{TOOL}"))]),
            ("house", rng.choice(("orders", VICTIM))),
            ("memory_config", {"top_k": 20}),
            ("functions", [rng.choice(("days_between", f"{VICTIM}.days_between"))]),
            ("type", rng.choice((OWN_AGENT, SECRET_AGENT))),
        )
        return made | dict(rng.sample(named, rng.choice((0, 0, 1, 1, 2))))

    def cases(self) -> list[dict[str, object]]:
        """Return cases of a dataset."""
        memory = {"id": "m", "agent_type": "sdr", "content": str(self.field("content", {}))}
        text = str(self.field("query", {}))
        expected = {"memories": {"relevant": ["m"], "k": 5}}
        return [{"id": "one", "input": text, "memories": [memory], "expected": expected}]

    def field(self, name: str, schema: Schema, definitions: Schema | None = None) -> object:
        """Return a value for a field: by its name, otherwise by its schema."""
        made = None if "enum" in schema else self._by_name.get(name)
        return self.by_schema(schema, definitions or {}) if made is None else made()

    def by_schema(self, schema: Schema, definitions: Schema) -> object:
        """Return a value that a JSON Schema of a model allows."""
        rng = self.rng
        if "$ref" in schema:
            return self.by_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return self.by_schema(rng.choice(schema[several]), definitions)
        match schema.get("type"):
            case "object":
                return self.object(schema, definitions)
            case "array":
                count = max(schema.get("minItems", 0), rng.randrange(3))
                return [self.by_schema(schema.get("items", {}), definitions) for _ in range(count)]
            case "boolean":
                return rng.random() < 0.5
            case "integer":
                return rng.randint(schema.get("minimum", 0), schema.get("maximum", 100))
            case "number":
                return rng.uniform(schema.get("minimum", 0), schema.get("maximum", 1))
            case "null":
                return None
        return rng.choice((VICTIM, "plain", self.known("any")))

    def object(self, schema: Schema, definitions: Schema, *, most: float = 0.35) -> dict[str, object]:
        """Return an object with all required fields and some of the others. most: how likely each of these is."""
        definitions = schema.get("$defs", definitions)
        required = schema.get("required", ())
        return {
            name: self.field(name, field, definitions)
            for name, field in schema.get("properties", {}).items()
            if name in required or self.rng.random() < (0.5 if name in ("cursor", "filter") else most)
        }
