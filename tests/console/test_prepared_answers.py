"""What the console asks and shows for answers that a test has prepared. No server takes part: each state is reached."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.canned import EVERY, TENANT, Answer, Deployment, memory, problem, sample, waiting_run
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd  # for the browser, which is installed where workerd is

_AT_MS = "1700000000000"
_MANY = 101


def _entries(operation: str, list_name: str, count: int, key: str) -> Answer:
    """Return an answer with a list of so many entries, each with a key of its own."""
    one = sample(operation)[list_name][0]
    return sample(operation, **{list_name: [{**one, key: f"{number}"} for number in range(count)]})


SCREENS = {
    "runs": "list_runs",
    "runs/1": "inspect_run",
    "people": "list_users",
    "people/ann": "get_user",
    "memory": "list_memories",
    "memory/1": "get_memory",
    "recall?query=tea": "recall_memories",
    "evaluations": "list_evaluations",
    "evaluations/1": "get_evaluation",
    "datasets/recall": "get_dataset",
    "agents/sdr": "list_agents",
}
PARTS = (
    *("get_ready", "list_errors", "list_debts", "list_schedules", "get_quotas", "list_costs", "list_agents"),
    *("list_keys", "list_webhooks", "list_erasure_receipts", "get_key_migration", "list_shards"),
)


@pytest.mark.parametrize(
    ("status", "code", "shown"),
    [
        (401, "unauthenticated", "session_ended"),
        (403, "forbidden", None),
        (429, "rate_limited", None),
        (503, "d1_unavailable", None),
    ],
)
def test_every_view_says_why_it_was_refused(console: Deployment, status: int, code: str, shown: str | None) -> None:
    console.open("runs/none")
    console.answers |= {name: [(status, problem(code))] for name in {*SCREENS.values(), *PARTS}}
    alerts = console.page.get_by_role("alert")
    for address in SCREENS:
        console.page.evaluate(f"location.hash = '#/{TENANT}/{address}'")
        expect(alerts.filter(has_text=shown or code).first).to_be_visible()
    console.page.evaluate(f"location.hash = '#/{TENANT}/operations'")
    expect(alerts.filter(has_text=shown or code)).to_have_count(len(PARTS))


@pytest.mark.parametrize(
    ("address", "operation", "link", "query"),
    [
        ("runs?status=failed&agent_type=sdr", "list_runs", "Older", {"status": "failed", "agent_type": "sdr"}),
        ("memory?user_id=ann&all=true", "list_memories", "Next", {"user_id": "ann", "all": "true"}),
        (f"memory?as_of_ms={_AT_MS}", "list_memories", "Next", {"as_of_ms": _AT_MS}),
        (f"people?as_of_ms={_AT_MS}", "list_users", "Next", {}),
    ],
)
def test_the_next_page_has_the_conditions_of_the_first(
    console: Deployment, address: str, operation: str, link: str, query: dict[str, str]
) -> None:
    console.answers[operation] = [sample(operation, cursor="c")]
    console.open(address)
    console.page.get_by_role("link", name=link, exact=True).click()
    eventually(lambda: console.page.evaluate("1") and console.queries(operation), lambda asked: "cursor" in asked[-1])
    assert console.queries(operation)[-1] == {**query, "cursor": "c", "limit": "50"}
    for condition in address.partition("?")[2].split("&"):
        assert condition in console.page.url, "who goes on from there has them as well"


def test_another_time_begins_at_the_first_page(console: Deployment) -> None:
    console.open("memory?kind=fact&cursor=c")
    console.page.get_by_label("As of this time").fill("2024-01-01T10:00:00")
    expect(console.page.get_by_role("button", name="Back to now")).to_be_visible()
    assert "cursor" not in console.page.url
    assert "kind=fact" in console.page.url


@pytest.mark.parametrize(
    ("address", "operation", "others", "shown", "pressed"),
    [
        ("evaluations/1", "get_evaluation", {"cursor": 1, "state": "completed"}, ".cases > li", ()),
        ("memory/1", "get_memory", {"cursor": "c"}, ".history > li", ()),
        ("operations", "verify_history", {"cursor": "c"}, ".status.completed >> text=whole", ("Verify",)),
        ("operations", "list_webhooks", {"cursor": "c"}, "summary >> text=the url", ()),
        ("recall?query=tea", "list_datasets", {"cursor": "c"}, "#datasets > option", ()),
    ],
)
def test_what_is_shown_whole_is_read_to_its_last_page(
    console: Deployment, address: str, operation: str, others: dict[str, Any], shown: str, pressed: tuple[str, ...]
) -> None:
    last = {"state": "completed"} if "state" in others else {}
    answers: list[Any] = [sample(operation, **others), sample(operation, **others), sample(operation, **last)]
    for number, answer in enumerate(answers):
        for name in ("results", "events", "webhooks", "datasets"):
            for entry in answer.get(name, ()):
                entry |= {key: f"{number}" for key in ("case_id", "event_id", "webhook_id", "name") if key in entry}
                if name == "datasets":
                    entry["target"] = {"recall": {}}
    console.answers[operation] = answers
    console.open(address)
    for name in pressed:
        console.button(name).click()
    expect(console.page.locator(shown)).to_have_count(1 if operation == "verify_history" else 3)
    assert [query.get("cursor") for query in console.queries(operation)] == [None, *[f"{others['cursor']}"] * 2]


@pytest.mark.parametrize(
    ("operation", "list_name", "key", "most"),
    [
        ("list_errors", "errors", "error_id", 100),
        ("list_schedules", "schedules", "schedule_id", 100),
        ("list_costs", "costs", "model", 100),
        ("list_keys", "keys", "key_id", 100),
        ("list_erasure_receipts", "receipts", "receipt_id", 20),
    ],
)
def test_a_list_that_is_not_whole_says_so(
    console: Deployment, operation: str, list_name: str, key: str, most: int
) -> None:
    console.answers[operation] = [_entries(operation, list_name, _MANY, key)]
    console.open("operations")
    expect(console.page.get_by_text(f"The first {most} are shown.")).to_have_count(1)


PRESSED_TWICE = [
    ("memory/1", "get_memory", memory, (), "Close: it is no longer so", "update_memory"),
    ("memory/1", "get_memory", memory, ("Delete …",), "Delete", "delete_memory"),
    (
        "memory/1",
        "get_memory",
        memory,
        ("Erase everything about ann …",),
        "Erase everything about ann",
        "erase_memories",
    ),
    ("runs/1", "inspect_run", waiting_run, (), "Approve", "resume_run"),
    ("operations", "list_errors", lambda: sample("list_errors"), (), "Replay", "replay_error"),
]


@pytest.mark.parametrize(
    ("address", "shown", "answer", "before", "name", "operation"),
    PRESSED_TWICE,
    ids=[case[-1] for case in PRESSED_TWICE],
)
def test_what_is_pressed_twice_is_done_once(
    console: Deployment, address: str, shown: str, answer: Any, before: tuple[str, ...], name: str, operation: str
) -> None:
    console.answers[shown] = [answer()]
    console.held[operation] = []
    console.open(address)
    for first in before:
        console.button(first).click()
    console.button(name).first.dblclick()
    console.page.evaluate("new Promise((resolve) => setTimeout(resolve, 20))")
    assert len(console.sent(operation)) == 1
    console.release(operation)


def test_forget_that_is_pressed_twice_is_done_once(console: Deployment) -> None:
    console.answers["get_user"] = [sample("get_user", id="ann")]
    console.held["delete_user"] = []
    console.open("people/ann")
    expect(console.button("Forget")).to_be_disabled()
    console.page.get_by_label("User", exact=True).fill("an")
    expect(console.button("Forget")).to_be_disabled()
    console.page.get_by_label("User", exact=True).fill("ann")
    console.button("Forget").dblclick()
    console.page.evaluate("new Promise((resolve) => setTimeout(resolve, 20))")
    assert len(console.sent("delete_user")) == 1
    console.release("delete_user")


def test_what_failed_is_pressed_again(console: Deployment) -> None:
    console.answers |= {"get_memory": [memory()], "update_memory": [(403, problem("forbidden")), memory()]}
    console.open("memory/1")
    console.button("Close: it is no longer so").click()
    expect(console.page.get_by_role("alert")).to_contain_text("forbidden")
    console.button("Close: it is no longer so").click()
    eventually(lambda: console.page.evaluate("1") and console.requests("update_memory"), lambda asked: len(asked) == 2)
    expect(console.page.get_by_role("alert")).to_have_count(0)


def test_a_question_takes_the_focus_and_gives_it_back(console: Deployment) -> None:
    """Who uses the keyboard would begin at the top of the page again, and a screen reader would not say what follows."""
    console.answers["get_memory"] = [memory()]
    console.open("memory/1")
    console.button("Delete …").focus()
    console.page.keyboard.press("Enter")
    expect(console.page.get_by_role("group", name="Delete")).to_be_focused()
    console.page.keyboard.press("Tab")
    expect(console.button("Delete")).to_be_focused()
    console.page.keyboard.press("Tab")
    console.page.keyboard.press("Enter")
    expect(console.button("Delete …")).to_be_focused()


def test_a_version_is_defined_again_unless_the_agent_changed_meanwhile(console: Deployment) -> None:
    version = sample("list_agent_versions")["versions"][0]
    versions = [{**version, "version": number, "agent_type": "sdr"} for number in (3, 2, 1)]
    agent = {**sample("list_agents")["agents"][0], "agent_type": "sdr", "source": "tenant", "version": 3}
    console.answers |= {
        "list_agents": [sample("list_agents", agents=[agent])],
        "list_agent_versions": [
            sample("list_agent_versions", versions=versions),
            sample("list_agent_versions", versions=[{**version, "version": 4}, *versions]),
        ],
    }
    console.open("agents/sdr?version=1")
    console.button("Define as in version 1 …").click()
    expect(console.page.get_by_text("It becomes version 4")).to_be_visible()
    console.button("Define as in version 1").click()
    expect(console.page.get_by_text("Version 4")).to_be_visible()
    [request] = console.sent("roll_back_agent")
    assert (request.headers["if-match"], request.post_data_json) == ('"3"', {"version": 1})
    expect(console.page.get_by_text("It becomes version")).to_have_count(0)


def test_an_instance_that_does_not_answer_is_among_those_that_are_behind(console: Deployment) -> None:
    console.answers["get_instance"] = [(503, problem("object_unavailable"))]
    console.open("operations")
    console.button("Ask the 20 newest").click()
    expect(console.page.get_by_text("did not answer")).to_be_visible()


def test_every_request_asks_for_a_refusal_instead_of_a_login(console: Deployment) -> None:
    console.open("operations")
    expect(console.page.get_by_text("version the version")).to_be_visible()
    expect(console.page.get_by_role("heading", name="Keys", exact=True)).to_be_visible()
    assert {request.headers.get("x-requested-with") for _, request in console.asked} == {"XMLHttpRequest"}
    assert all(re.search(r"key|token|authorization", name) is None for _, one in console.asked for name in one.headers)


ALLOWED = [
    ("people/ann", "get_user", "Forget", "delete_user"),
    ("memory/1", "get_memory", "Delete …", "delete_memory"),
    ("memory/1", "get_memory", "Erase everything about ann …", "erase_memories"),
    ("memory/1", "get_memory", "Close: it is no longer so", "update_memory"),
    ("runs/1", "inspect_run", "Approve", "resume_run"),
    ("runs/1", "inspect_run", "Cancel", "cancel_run"),
    ("operations", "list_errors", "Replay", "replay_error"),
    ("operations", "list_errors", "Dismiss", "dismiss_error"),
    ("operations", "list_schedules", "Delete …", "delete_schedule"),
    ("operations", "list_instances", "Ask the 20 newest", "get_instance"),
    ("datasets/recall", "get_dataset", "Run it", "start_evaluation"),
]


@pytest.mark.parametrize(("address", "shown", "name", "operation"), ALLOWED, ids=[case[-1] for case in ALLOWED])
def test_only_who_may_do_it_is_offered_it(
    console: Deployment, address: str, shown: str, name: str, operation: str
) -> None:
    console.answers |= {"get_memory": [memory()], "inspect_run": [waiting_run()]}
    every = [name for name in EVERY if name != operation]
    console.answers["get_own_access"] = [
        sample("get_own_access", operations=every),
        sample("get_own_access", operations=[*every, operation]),
    ]
    console.open(address)
    expect(console.page.get_by_text("Loading …")).to_have_count(0)
    expect(console.page.get_by_role("heading", level=1)).to_be_visible()
    expect(console.button(name)).to_have_count(0)
    console.open(address)
    expect(console.button(name)).to_be_visible()
