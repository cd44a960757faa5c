"""Structured logs: one JSON object per line on stdout, without secrets.

Modules log through the standard library (`logging.getLogger(__name__)`, fields in `extra`). `configure` sets the
format, `bind` adds the fields that all lines of a request or run share.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar

REDACTED = "[redacted]"
MAX_TEXT_CHARACTERS = 8_192
"""Longest text in a line; the rest is cut off. Workers keeps 256 KB of logs per request.

Source: https://developers.cloudflare.com/workers/observability/logs/workers-logs/#limits
"""
MAX_DEPTH = 8
"""Deepest nesting shown, so that a value that contains itself is cut off."""

_SECRET_NAME = re.compile(
    r"authori[sz]ation|(?:api|private|access|signing)key|token|passw|passphrase|secret|credential|cookie|bearer|jwt|assertion"
)
_SECRET_TEXT = re.compile(
    r"""
      retain_[a-z0-9-]+_[\w-]{16,}                                   # an API key of ours, see retain.gateway.keys
    | (?<![a-z0-9])sk-[\w-]{16,}                                     # one of a model provider
    | eyJ[\w-]*\.[\w-]+(?:\.[\w-]*)?                                # a JWT, whole or cut short
    | bearer\s+(?!\[redacted\])[\w.~+/=-]{8,}                       # an Authorization header
    | basic\s+[a-z0-9+/]{16,}=*
    | (?<=://)[^/\s@]+(?=@)                                         # user and password in an address
    | (?:authori[sz]ation|cookie)["']?\s*[=:][^\n]+                 # a header in a text, to the end of its line
    | (?:api[-_ ]?key|token|passw(?:or)?d|passphrase|secret|credentials?)["']?\s*[=:]\s*
      (?: "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'                    # name=value in a text: a quoted value,
        | [^\s,;&)}\]\[({"']++(?![\[({"']) | [^\n]+ )               # a word, or else the rest of the line
    """,
    re.IGNORECASE | re.VERBOSE,
)
_QUERY = re.compile(r"\?(?=[^\s?=]{1,200}=)[^\s'\"<>)]+")
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_context: ContextVar[Mapping[str, object]] = ContextVar("retain_log_context", default={})  # noqa: B039 -- never mutated


def bound(name: str) -> object:
    """Return a field that is bound in this context, or None: for passing it to another object."""
    return _context.get().get(name)


@contextmanager
def bind(**fields: object) -> Iterator[None]:
    """Add the fields (request_id, tenant, run_id, …) to every line logged inside the block, also by tasks it starts."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def configure(level: int = logging.INFO) -> None:
    """Send the logs of "retain" and its children to stdout as JSON lines, and nowhere else. Idempotent."""
    logger = logging.getLogger("retain")
    logger.setLevel(level)
    logger.propagate = False  # a handler of the root logger would print what is redacted here
    if not any(isinstance(handler, _StdoutHandler) for handler in logger.handlers):
        handler = _StdoutHandler()
        handler.setFormatter(JsonFormatter())
        logger.addHandler(handler)


def redact_failure(text: str) -> str:
    """Return the text of an error or its traceback without secrets, and without the queries of addresses."""
    return _QUERY.sub("?" + REDACTED, redact_text(text))


def redact_text(text: str) -> str:
    """Return the text with everything that looks like a credential replaced, cut to the maximum length."""
    clean = _SECRET_TEXT.sub(REDACTED, text)
    return clean if len(clean) <= MAX_TEXT_CHARACTERS else clean[:MAX_TEXT_CHARACTERS] + "…"


def redact(value: object, depth: int = 0) -> object:
    """Return the value in a form that JSON can hold, with secrets replaced by "[redacted]".

    Secrets are values under a name that says so (authorization, api_key, token, password, …; a number under a name with
    "token" is a count and stays), and texts anywhere that look like an API key, a bearer token or a JWT.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if depth >= MAX_DEPTH:
        return "[too deep]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {redact_text(str(name)): _field(str(name), inner, depth) for name, inner in value.items()}
    if isinstance(value, Sequence | Set):
        return [redact(inner, depth + 1) for inner in value]
    return redact_text(str(value))


def _field(name: str, value: object, depth: int) -> object:
    secret = _SECRET_NAME.search(re.sub(r"[^a-z]", "", name.lower()))
    if secret is None or value is None or isinstance(value, bool):
        return redact(value, depth + 1)
    is_count = secret.group() == "token" and isinstance(value, int | float)
    return value if is_count else REDACTED


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: level, at_ms, logger, message, the bound context, and its extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. Fields of the record win over the context's; neither can replace the first four."""
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        fields: dict[str, object] = {**_context.get(), **extra}
        if record.exc_info:
            fields["exception"] = redact_failure(self.formatException(record.exc_info))
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        redacted = redact(fields)
        assert isinstance(redacted, dict)
        line = {
            **redacted,
            "level": record.levelname.lower(),
            "at_ms": int(record.created * 1000),
            "logger": record.name,
            "message": redact_text(record.getMessage()),
        }
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


class _StdoutHandler(logging.Handler):
    """Writes to the current `sys.stdout`, which the platform and tests replace."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 -- a value that cannot be shown must not fail the one who logs it
            # `handleError` would print the record unredacted.
            line = json.dumps(
                {"level": "error", "logger": record.name, "message": f"unloggable: {type(error).__name__}"}
            )
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
