"""Attachments over HTTP on workerd: what is uploaded reaches the model on the wire, whole and unchanged."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from retain.agents.calls.asked_files import MAX_BODY_BYTES
from retain.models.chat import ChatReply
from tests.e2e.calls import recorded_run, run
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.support.anthropic_server import AnthropicServer
from tests.support.browser import browsing
from tests.support.files import PDF, data_url, png

pytestmark = pytest.mark.workerd


def upload(api: httpx.Client, tenant_id: str, content: bytes, media_type: str, **query: str) -> dict[str, Any]:
    """Upload a file and return the attachment."""
    headers = {"content-type": media_type}
    answer = api.post(f"/v1/agents/{tenant_id}/attachments", content=content, headers=headers, params=query)
    assert answer.status_code in (200, 201), answer.text
    attachment: dict[str, Any] = answer.json()
    return attachment


def test_an_openai_model_is_sent_an_uploaded_image_a_pdf_and_a_text(steered: Steered, puppet: Puppet) -> None:
    tenant_id, picture = steered.tenant(), png(padding=200_000)
    image = upload(steered.api, tenant_id, picture, "image/png", name="café.png")
    pdf = upload(steered.api, tenant_id, PDF, "application/octet-stream")
    text = upload(steered.api, tenant_id, "Grüße: 3 apples".encode(), "text/plain", name="list.txt")
    assert (image["name"], pdf["name"], pdf["media_type"]) == ("café.png", "file.pdf", "application/pdf")
    asked = order(say="seen")
    named = [{"id": one["id"]} for one in (image, pdf, text)]
    assert run(steered.api, tenant_id, "viewer", asked, attachments=named)["output"] == "seen"
    [message] = puppet.received[-1].body["messages"][1:]
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": data_url(picture)}},
        {"type": "file", "file": {"filename": "file.pdf", "file_data": data_url(PDF, "application/pdf")}},
        {"type": "text", "text": '<file name="list.txt">\nGrüße: 3 apples\n</file>'},
        {"type": "text", "text": asked},
    ]


def test_a_model_of_anthropic_is_sent_blocks(steered: Steered, anthropic: AnthropicServer) -> None:
    tenant_id, picture = steered.tenant(), png()
    pdf = upload(steered.api, tenant_id, PDF, "application/pdf", name="bill.pdf")
    anthropic.say(ChatReply("a picture and a bill"))
    inline = {"data": base64.b64encode(picture).decode(), "media_type": "image/png", "name": "a.png"}
    answered = run(steered.api, tenant_id, "reader", "What is it?", attachments=[inline, {"id": pdf["id"]}])
    assert answered["output"] == "a picture and a bill"
    [message] = anthropic.received[-1].body["messages"]
    assert message["content"] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture).decode()},
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(PDF).decode()},
            "title": "bill.pdf",
        },
        {"type": "text", "text": "What is it?"},
    ]


def test_what_is_uploaded_is_downloaded_unchanged_and_cannot_be_run_by_a_browser(steered: Steered) -> None:
    tenant_id, page = steered.tenant(), b"<script>alert(1)</script>"
    path = f"/v1/agents/{tenant_id}/attachments"
    made = upload(steered.api, tenant_id, page, "text/html; charset=utf-8", name='a"b;c.html')
    served = steered.api.get(f"{path}/{made['id']}/content")
    assert served.content == page
    assert served.headers["content-type"] == "text/plain; charset=utf-8"
    assert served.headers["content-disposition"] == "attachment; filename*=UTF-8''a%22b%3Bc.html"
    assert served.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in served.headers["content-security-policy"]
    large = png(padding=4 * 1_048_576)
    big = upload(steered.api, tenant_id, large, "image/png")
    assert steered.api.get(f"{path}/{big['id']}/content").content == large
    listed = steered.api.get(path).json()["attachments"]
    assert [one["id"] for one in listed] == [big["id"], made["id"]]
    assert steered.api.delete(f"{path}/{made['id']}").status_code == 204
    gone = steered.api.get(f"{path}/{made['id']}/content")
    assert (gone.status_code, gone.json()["code"]) == (404, "no_such_attachment")


def test_chat_completions_send_images_of_the_last_and_of_earlier_messages(steered: Steered, puppet: Puppet) -> None:
    tenant_id, first, second = steered.tenant(), png(seed=1, padding=1_500_000), png(seed=2)
    asked = order(say="two pictures")

    def user(text: str, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": text}, *parts]}

    image = {"type": "image_url", "image_url": {"url": data_url(first), "detail": "low"}}
    text = {
        "type": "file",
        "file": {"file_id": upload(steered.api, tenant_id, b"tea", "text/plain", name="l.txt")["id"]},
    }
    messages = [
        user("one", image),
        {"role": "assistant", "content": "A picture."},
        user(asked, {"type": "image_url", "image_url": {"url": data_url(second)}}, text),
    ]
    headers = {"openai-organization": tenant_id}
    body = {"model": "viewer", "messages": messages}
    for _ in range(2):
        answer = steered.api.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.json()["choices"][0]["message"]["content"] == "two pictures", answer.text
        *_, before, reply, last = puppet.received[-1].body["messages"]
        assert before["content"] == [
            {"type": "image_url", "image_url": {"url": data_url(first)}},
            {"type": "text", "text": "one"},
        ]
        assert reply["content"] == "A picture."
        assert last["content"] == [
            {"type": "image_url", "image_url": {"url": data_url(second)}},
            {"type": "text", "text": '<file name="l.txt">\ntea\n</file>'},
            {"type": "text", "text": asked},
        ]
    stored = steered.api.get(f"/v1/agents/{tenant_id}/attachments").json()["attachments"]
    assert len(stored) == 3, "what a client sends again is stored once"


def test_an_upload_is_refused_before_or_while_it_arrives_and_leaves_nothing(steered: Steered) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/attachments"

    def refused(content: Any, media_type: str, **query: str) -> tuple[int, str]:
        answer = steered.api.post(path, content=content, headers={"content-type": media_type}, params=query)
        return answer.status_code, answer.json()["code"]

    assert refused(b"%PDF-1.4 not a picture", "image/png") == (400, "media_type_mismatch")
    assert refused(b"a" * 100_000 + b"\xff", "text/plain") == (400, "media_type_mismatch")
    assert refused(b"a", "image/svg+xml") == (400, "unsupported_media_type")
    assert refused(b"a", "multipart/form-data; boundary=x") == (400, "unsupported_media_type")
    assert refused(b"", "text/plain") == (400, "empty_content")
    assert refused(b"a", "text/plain", name="../a") == (400, "invalid_attachment_name")
    assert refused(png(padding=5 * 1_048_576), "image/png") == (413, "body_too_large")
    assert refused((piece for piece in (b"a", b"b")), "text/plain") == (400, "length_required")
    assert steered.api.get(path).json()["attachments"] == []


def test_a_user_s_files_are_gone_with_the_user_and_a_conversation_s_with_it(steered: Steered) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/attachments"
    of_ann = upload(steered.api, tenant_id, png(seed=1), "image/png", user="ann")
    of_all = upload(steered.api, tenant_id, png(seed=2), "image/png")
    body = {"input": order(say="seen"), "instance_id": "desk", "attachments": [{"id": of_all["id"]}]}
    assert steered.api.post(f"/v1/agents/{tenant_id}/viewer/run", json=body).json()["status"] == "completed"
    erased = steered.api.delete(f"/v1/tenants/{tenant_id}/users/ann").json()
    while erased["receipt"]["state"] != "completed":
        erased = steered.api.delete(f"/v1/tenants/{tenant_id}/users/ann").json()
    assert [one["id"] for one in steered.api.get(path).json()["attachments"]] == [of_all["id"]]
    assert steered.api.get(f"{path}/{of_ann['id']}").status_code == 404
    assert steered.api.delete(f"/v1/agents/{tenant_id}/viewer/instances/desk").status_code == 204
    assert steered.api.get(path).json()["attachments"] == []


def test_a_body_with_files_has_a_largest_size(steered: Steered) -> None:
    tenant_id = steered.tenant()
    head, tail = b'{"input": "{\\"calls\\": [], \\"say\\": \\"seen\\"}"', b"}"
    for size, status in ((MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413)):
        body = head + b" " * (size - len(head) - len(tail)) + tail
        headers = {"content-type": "application/json"}
        answer = steered.api.post(f"/v1/agents/{tenant_id}/viewer/run", content=body, headers=headers)
        assert answer.status_code == status, answer.text


def test_the_console_lists_what_came_with_a_run_for_download(steered: Steered) -> None:
    tenant_id, picture = steered.tenant(), png(padding=2_000)
    image = upload(steered.api, tenant_id, picture, "image/png", name="café & תמונה.png")
    ended = run(steered.api, tenant_id, "viewer", order(say="seen"), attachments=[{"id": image["id"]}])
    recorded_run(steered.api, tenant_id, ended["run_id"])
    with browsing() as browser:
        browser.do(f"open {steered.server.base_url}/console#/{tenant_id}/runs/{ended['run_id']}")
        link = browser.tab.get_by_role("link", name="café & תמונה.png")
        with browser.tab.expect_download() as begun:
            link.click()
        assert begun.value.path().read_bytes() == picture
        assert browser.errors == []
