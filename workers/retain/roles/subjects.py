"""Subjects: to whom a role is granted, as `email:`, `domain:`, `service:`, `group:` or `claim:` and a value.

A caller is several subjects at once: an e-mail address, its domain, and each group and claim in the token of Access.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from retain.errors import InvalidInput

SUBJECT = re.compile(
    r"(?:email|domain|service|group|claim):[^\x00-\x20\x7f,](?:[^\x00-\x1f\x7f,]{0,198}[^\x00-\x20\x7f,])?"
)
"""The grammar of a subject. It holds no comma, which separates those of the setting `OWNERS`."""
MAX_SUBJECTS = 200
"""Most subjects of one caller. Groups and claims beyond that give no role."""

_EMAIL = re.compile(r"email:[^@\s]+@[^@\s]+")
_DOMAIN = re.compile(r"domain:[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_CLAIM = re.compile(r"claim:[^=]+=.+")


def check_subject(text: str) -> str:
    """Return the subject in its one spelling: addresses and domains in lower case.

    Raises: InvalidInput (code `invalid_role_subject`).
    """
    kind = text.partition(":")[0]
    subject = text.lower() if kind in ("email", "domain") else text
    grammar = {"email": _EMAIL, "domain": _DOMAIN, "claim": _CLAIM}.get(kind, SUBJECT)
    if SUBJECT.fullmatch(subject) is None or grammar.fullmatch(subject) is None:
        raise InvalidInput(
            "a subject is email:<address>, domain:<domain of an address>, service:<client id>, group:<name> or"
            " claim:<name>=<value>",
            code="invalid_role_subject",
        )
    return subject


def read_subjects(text: str) -> frozenset[str]:
    """Return the subjects of a list separated by commas. Raises: InvalidInput (code `invalid_role_subject`)."""
    return frozenset(check_subject(part.strip()) for part in text.split(",") if part.strip())


def subjects_of(claims: Mapping[str, object]) -> tuple[str, ...]:
    """Return the subjects that the claims of a verified token name, each one once.

    Groups and custom claims are what the team's identity provider passes on in `custom`; `groups` there are groups.
    Source: https://developers.cloudflare.com/cloudflare-one/identity/authorization-cookie/application-token
    """
    named = dict.fromkeys(_subjects(claims))
    return tuple(list(named)[:MAX_SUBJECTS])


def _subjects(claims: Mapping[str, object]) -> Iterator[str]:
    email = claims.get("email")
    if isinstance(email, str) and email:
        yield from _valid(f"email:{email}")
        yield from _valid(f"domain:{email.rpartition('@')[2]}")
    elif isinstance(name := claims.get("common_name"), str):
        yield from _valid(f"service:{name}")
    custom = claims.get("custom")
    groups = [claims.get("groups")]
    if isinstance(custom, Mapping):
        groups.append(custom.get("groups"))
    for listed in groups:
        for group in _texts(listed):
            yield from _valid(f"group:{group}")
    if isinstance(custom, Mapping):
        for claim, listed in custom.items():
            for value in _texts(listed):
                yield from _valid(f"claim:{claim}={value}")


def _texts(value: object) -> Iterator[str]:
    """Yield a text, or the texts of a list."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            yield one


def _valid(text: str) -> Iterator[str]:
    """Yield the subject, if the grammar has it: what it has not can be granted no role."""
    try:
        yield check_subject(text)
    except InvalidInput:
        return
