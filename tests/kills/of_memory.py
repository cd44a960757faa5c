"""Work on a tenant's memories that is interrupted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.e2e.puppet import order
from tests.kills.place import Place, Things

_MESSAGES = ("I moved to Oslo.", "I work at Acme.", "I am a vegetarian.")


def stored(place: Place) -> None:
    """Store three records of an agent."""
    memories = [{"content": f"Memory {number} of carol.", "subject": "carol"} for number in range(3)]
    place.ask("POST", "/admin/seed-memory", {"tenant": place.tenant, "agent_type": "sdr", "memories": memories})


def edited(place: Place) -> None:
    """Change one record and delete another."""
    listed = place.ask("GET", "/admin/tenants/{tenant}/memories")["memories"]
    ids = {memory["content"]: memory["id"] for memory in listed}
    if "Memory 0 of carol." in ids:
        change = {"content": "Memory 0 of carol, changed."}
        place.ask("PATCH", f"/admin/tenants/{{tenant}}/memories/{ids['Memory 0 of carol.']}", change)
    if "Memory 1 of carol." in ids:
        place.ask("DELETE", f"/admin/tenants/{{tenant}}/memories/{ids['Memory 1 of carol.']}")


def ingested(place: Place) -> None:
    """Ingest a conversation, with its facts."""
    messages = [{"speaker": "Ann", "content": text} for text in _MESSAGES]
    sent = {"conversation": "c-1", "messages": messages, "agent_type": "sdr"}
    place.finish("POST", "/admin/tenants/{tenant}/memories/ingest", sent)


def erased(place: Place) -> None:
    """Erase a subject."""
    place.finish("POST", "/admin/tenants/{tenant}/erase", {"subject": "carol"})


def known_user(place: Place) -> None:
    """Give the tenant a user with a profile, records, a conversation and what was learned from it, each with a word."""
    secret = f"secret-{place.tenant}"
    place.ask("PUT", "/admin/tenants/{tenant}/users/carol", {"name": secret})
    record = {"content": f"Carol's code is {secret}.", "user_id": "carol"}
    place.ask("POST", "/admin/tenants/{tenant}/memories", record)
    place.ask("POST", "/admin/tenants/{tenant}/memories", {"content": "Bob's code is another.", "user_id": "bob"})
    for user in ("carol", "bob"):
        text = order(say=f"Hello, {secret if user == 'carol' else user}")
        body = {"input": text, "instance_id": user, "user": {"id": user}}
        place.ask("POST", "/v1/agents/{tenant}/support/run", body, key=user)


def erased_user(place: Place) -> None:
    """Erase a user."""
    place.finish("POST", "/admin/tenants/{tenant}/erase", {"user": "carol"})


def without_user(place: Place) -> Things:
    """Return what is found after the erasure of a user: nothing of theirs, and all of the other's."""
    secret = f"secret-{place.tenant}"
    return {
        **place.memories(),
        **place.runs(),
        "users": place.counted("SELECT user_id FROM users WHERE tenant_id = ?"),
        "messages": place.counted("SELECT user_id, role FROM conversation_messages WHERE tenant_id = ?"),
        "erased": Counter({"receipt": 1} if place.rows("SELECT 1 FROM erased_users WHERE tenant_id = ?") else {}),
        "traces": place.traces(secret),
    }


def reindexed(place: Place) -> None:
    """Rebuild the tenant's index."""
    place.finish("POST", "/admin/tenants/{tenant}/reindex")


def backed_up(place: Place) -> None:
    """Back the tenant up."""
    place.finish("POST", "/admin/tenants/{tenant}/backups")


def backups(place: Place) -> Things:
    """Return what is found of a backup: at least one that is complete, and all of what it is of."""
    listed = place.ask("GET", "/admin/tenants/{tenant}/backups")["backups"]
    return {**place.memories(), "backups": Counter({"complete": 1} if listed else {})}


def _source(place: Place) -> Place:
    """Return another tenant, with the same records before each work."""
    return replace(place, tenant=f"{place.tenant}-source")


def backed_up_elsewhere(place: Place) -> None:
    """Let another tenant have records, and a backup of them."""
    source = _source(place)
    source.ask("PUT", "/admin/tenants/{tenant}")
    stored(source)
    backed_up(source)


def restored(place: Place) -> None:
    """Restore the tenant from the other's backup."""
    place.finish("POST", "/admin/tenants/{tenant}/restore", {"from": _source(place).tenant})


def imported(place: Place) -> None:
    """Import what the other tenant exports."""
    cursor: str | None = ""
    while cursor is not None:
        page = _source(place).request("GET", f"/admin/tenants/{{tenant}}/export{cursor and f'?cursor={cursor}'}")
        assert page.is_success, page.text
        place.ask("POST", "/admin/tenants/{tenant}/import", page.text)
        cursor = page.headers.get("x-next-cursor")


def records(place: Place) -> Things:
    """Return what is found of records."""
    return place.memories()
