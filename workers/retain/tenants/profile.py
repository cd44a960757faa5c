"""What an application says of one of its users."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.identifiers import check_user_id

MAX_NAME = 200
"""Longest name of a user, in characters."""
_LOCALE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,7}")
_TIMEZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,31}){0,2}")


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's id, and what is known of them.

    user_id: the application's own. name: how to address the user. locale: BCP 47, such as `fr-CH`. timezone: IANA, such as
    `Europe/Zurich`.

    Raises: InvalidInput (code `invalid_user`).
    """

    user_id: str
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        check_user_id(self.user_id)
        name = self.name
        if name is not None and not (0 < len(name) <= MAX_NAME and name.isprintable() and name.strip()):
            raise InvalidInput(f"a user's name has 1 to {MAX_NAME} printable characters", code="invalid_user")
        if self.locale is not None and _LOCALE.fullmatch(self.locale) is None:
            raise InvalidInput("a user's locale must be a BCP 47 tag, such as fr-CH", code="invalid_user")
        if self.timezone is not None and _TIMEZONE.fullmatch(self.timezone) is None:
            raise InvalidInput("a user's timezone must be an IANA name, such as Europe/Zurich", code="invalid_user")
