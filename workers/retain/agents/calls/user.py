"""The user for whom a run acts: named by the application, never by a model, a prompt or a tool's argument."""

from __future__ import annotations

from dataclasses import dataclass

from retain.agents.calls.fields import Fields
from retain.identifiers import check_profile, check_user_id
from retain.json_text import Json, JsonObject


@dataclass(frozen=True, slots=True)
class User:
    """An end user of the tenant's application.

    id: the application's own. name: how to address the user. locale: BCP 47, such as `fr-CH`. timezone: IANA, such as
    `Europe/Zurich`.

    Raises: InvalidInput (code `invalid_user`).
    """

    id: str
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        check_user_id(self.id)
        check_profile(self.name, self.locale, self.timezone)

    def to_json(self) -> dict[str, Json]:
        """Return the user as it is sent and as the journal keeps it."""
        return {"id": self.id, "name": self.name, "locale": self.locale, "timezone": self.timezone}

    @classmethod
    def from_json(cls, content: JsonObject) -> User:
        """Return the user from its `to_json` form. Raises: InvalidInput."""
        fields = Fields(content)
        return cls(
            fields.text("id"),
            fields.text_or_none("name"),
            fields.text_or_none("locale"),
            fields.text_or_none("timezone"),
        )
