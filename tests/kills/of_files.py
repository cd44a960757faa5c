"""Files of runs that are interrupted: uploads, deletions, and a run that passes one on to its delegate."""

from __future__ import annotations

from collections import Counter

from tests.e2e.puppet import order
from tests.kills.place import Place, Things

_FILES = "/v1/agents/{tenant}/attachments"
LISTED, NOTED = "tea, 3\n" * 2_000, "no sugar"


def _uploaded(place: Place, name: str, content: str) -> str:
    path = f"{_FILES.replace('{tenant}', place.tenant)}?name={name}"
    headers = {"x-work": place.tenant, "content-type": "text/plain"}
    answer = place.api.post(path, content=content, headers=headers)
    assert answer.is_success, answer.text
    return str(answer.json()["id"])


def attached(place: Place) -> None:
    """Upload two files, delete one, and run an agent with the other and one that the request brings."""
    listed, gone = _uploaded(place, "list.txt", LISTED), _uploaded(place, "gone.txt", "gone")
    answer = place.request("DELETE", f"{_FILES}/{gone}")
    assert answer.is_success or answer.status_code == 404, answer.text
    inner = order(say="read")
    asked = order(("delegate", {"agent": "helper", "input": inner, "files": ["list.txt", "note.txt"]}), say="done")
    files = [{"id": listed}, {"data": "bm8gc3VnYXI=", "media_type": "text/plain", "name": "note.txt"}]
    body = {"input": asked, "instance_id": "desk", "attachments": files}
    run = place.ask("POST", "/v1/agents/{tenant}/clerk/run", body, key="attached")
    assert (run["status"], run["output"]) == ("completed", "done"), run


def files(place: Place) -> Things:
    """Return what is found of files: each once with its whole content, and no object without a row.

    An upload that was interrupted leaves a row that nobody can read, which is deleted after a day with its object.
    """
    prefix = f"attachments/{place.tenant}/"
    objects = {key.removeprefix(prefix): content for key, content in place.state.r2(prefix).items()}
    rows = place.rows("SELECT attachment_id, name, sha256 FROM attachments WHERE tenant_id = ?")
    whole = {row["attachment_id"]: row["name"] for row in rows if row["sha256"] is not None}
    names = {LISTED.encode(): "list.txt", NOTED.encode(): "note.txt"}
    messages = "SELECT agent_type, role, attachments FROM conversation_messages WHERE tenant_id = ?"
    return {
        **place.runs(),
        "files": Counter(whole.values()),
        "contents": Counter(names.get(objects.get(one, b""), "another content") for one in whole),
        "objects": Counter("without a row" for key in objects if key not in {row["attachment_id"] for row in rows}),
        "uses": place.counted("SELECT agent_type, attachment_id FROM attachment_uses WHERE tenant_id = ?"),
        "messages": place.counted(messages),
    }
