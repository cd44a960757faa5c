"""What the console shows of states that a test has prepared."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.canned import TENANT, Answer, Deployment, problem, sample, waiting_run

pytestmark = pytest.mark.workerd  # for the browser, which is installed where workerd is


def _with(operation: str, list_name: str, **others: Any) -> Answer:
    """Return an answer whose list has one entry, with other values of its members."""
    entry = sample(operation)[list_name][0]
    assert others.keys() <= entry.keys()
    return sample(operation, **{list_name: [{**entry, **others}]})


FLAGS = {**sample("get_key_migration")["flags"], "fit": False}
MOVE = {"source": "DB", "target": "DB_1", "step": "copying_rows"}
SPENT = {"input_tokens": 1, "output_tokens": 10, "learning_input_tokens": 100, "learning_output_tokens": 1_000}
WRONG = [
    ("list_schedules", _with("list_schedules", "schedules", last_error="run_quota", at_ms=1), "run_quota"),
    ("get_key_migration", sample("get_key_migration", flags=FLAGS), "they are not those of the phase"),
    ("get_key_migration", sample("get_key_migration", roll_back=True), "Roll it back"),
    ("get_tenant_shard", sample("get_tenant_shard", move=MOVE), "moves from DB to DB_1: copying rows"),
    ("list_erasure_receipts", _with("list_erasure_receipts", "receipts", error="r2_unavailable"), "r2_unavailable"),
    ("list_keys", _with("list_keys", "keys", revoked_at_ms=1), "the name revoked"),
    ("list_keys", _with("list_keys", "keys", expires_at_ms=1), "the name expired"),
    ("list_keys", _with("list_keys", "keys"), "the name valid"),
    ("list_costs", _with("list_costs", "costs", **SPENT), "1,111 tokens"),
    ("list_debts", _with("list_debts", "debts", count=2_000), "2,000"),
    ("verify_history", sample("verify_history", problem="a gap", broken_at=7), "a gap, at entry 7"),
]


@pytest.mark.parametrize(("operation", "answer", "text"), WRONG, ids=[f"{name}-{text}" for name, _, text in WRONG])
def test_operations_say_what_is_wrong(console: Deployment, operation: str, answer: Answer, text: str) -> None:
    console.answers |= {"list_schedules": [_with("list_schedules", "schedules", at_ms=1)], operation: [answer]}
    if operation == "get_tenant_shard":
        console.answers["list_shards"] = [sample("list_shards")]
    console.open("operations")
    if operation == "verify_history":
        console.button("Verify").click()
    expect(console.page.locator("main")).to_contain_text(text)


def test_what_the_caller_may_not_see_is_not_asked_for(console: Deployment) -> None:
    parts = {"list_errors": "Given up", "list_keys": "Keys", "list_webhooks": "Webhooks", "list_shards": "Databases"}
    console.answers["get_own_access"] = [sample("get_own_access", operations=["list_debts"])]
    console.open("operations")
    expect(console.page.get_by_role("heading", name="Still to be done")).to_be_visible()
    for operation, heading in parts.items():
        expect(console.page.get_by_role("heading", name=heading, exact=True)).to_have_count(0)
        assert console.requests(operation) == []


def test_another_tenant_is_asked_about_once_it_is_chosen(console: Deployment) -> None:
    console.open("operations")
    expect(console.page.get_by_role("heading", name="Databases")).to_be_visible()
    expect(console.page.get_by_text("Loading …")).to_have_count(0)
    [query] = console.queries("list_errors")
    assert query == {"state": "parked", "tenant": TENANT}
    console.asked.clear()
    console.page.evaluate("location.hash = '#/other/runs'")
    expect(console.page.locator(".runs > li")).to_have_count(1)
    assert all(f"/{TENANT}/" not in request.url for _, request in console.asked)


def test_a_live_list_stays_while_the_server_is_away(console: Deployment) -> None:
    console.page.clock.install()
    console.answers["list_runs"] = [sample("list_runs"), (503, problem("d1_unavailable"))]
    console.open("runs")
    expect(console.page.locator(".runs > li")).to_have_count(1)
    console.page.clock.run_for(4_000)
    expect(console.page.get_by_text("What is shown is older.")).to_be_visible()
    expect(console.page.locator(".runs > li")).to_have_count(1)


def _events(count: int) -> Answer:
    one = sample("list_run_events")["events"][0]
    many = [{**one, "seq": number, "kind": "model_asked", "turn": number, "data": {}} for number in range(1, count + 1)]
    return sample("list_run_events", events=many)


def test_every_row_of_a_run_is_printed_and_an_open_run_is_not_continued(console: Deployment) -> None:
    console.answers |= {"inspect_run": [waiting_run()], "list_run_events": [_events(200)]}
    console.open("runs/1?at=1")
    rows = console.page.locator(".virtual > li")
    expect(rows.first).to_be_visible()
    assert rows.count() < 200
    console.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(rows).to_have_count(200)
    console.page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(rows).not_to_have_count(200)
    expect(console.page.get_by_text("Prompt", exact=True)).to_be_visible()
    expect(console.button("Ask again from here")).to_have_count(0)


def test_a_file_of_a_run_is_downloaded_by_who_may(console: Deployment) -> None:
    files = [{"id": "0A", "name": "<b>.png", "media_type": "image/png", "bytes": 3}]
    console.answers |= {
        "inspect_run": [{**waiting_run(), "input": {"input": "hi", "attachments": files}}],
        "get_own_access": [
            sample("get_own_access", operations=["inspect_run"]),
            sample("get_own_access", operations=["inspect_run", "download_attachment"]),
        ],
    }
    console.open("runs/1")
    expect(console.page.get_by_label("Attachments").get_by_text("<b>.png")).to_be_visible()
    expect(console.page.get_by_role("link", name="<b>.png")).to_have_count(0)
    console.open("runs/1")
    link = console.page.get_by_role("link", name="<b>.png")
    expect(link).to_have_attribute("href", "/v1/agents/the%20tenant_id/attachments/0A/content")


def test_a_trend_begins_with_the_oldest_run_and_a_dataset_is_run_once(console: Deployment) -> None:
    run = sample("list_evaluations")["runs"][0]
    runs = [
        {**run, "run_id": name, "dataset": "recall", "scored_at_ms": 1, "passed": passed}
        for name, passed in (("2", 1), ("1", 0))
    ]
    console.answers["list_evaluations"] = [sample("list_evaluations", runs=runs)]
    console.held["start_evaluation"] = []
    console.open("datasets/recall")
    expect(console.page.get_by_role("img", name="0 %, 100 %")).to_be_visible()
    console.button("Run it").dblclick()
    expect(console.button("Running …")).to_be_disabled()
    assert len(console.sent("start_evaluation")) == 1
    console.release("start_evaluation")


def test_a_case_that_is_added_again_replaces_itself(console: Deployment) -> None:
    cases = [{"id": "tea", "input": "old"}, {"id": "other", "input": "kept"}]
    dataset = sample("get_dataset", name="recall", target={"recall": {}}, cases=cases)
    console.answers |= {
        "list_datasets": [_with("list_datasets", "datasets", name="recall", target={"recall": {}})],
        "get_dataset": [dataset],
    }
    console.open("recall?query=tea")
    console.page.get_by_text("Add this case to an evaluation").click()
    console.button("Add").click()
    expect(console.page.get_by_text("Added to recall.")).to_be_visible()
    [request] = console.sent("put_dataset")
    body: Any = request.post_data_json
    assert [(one["id"], one["input"]) for one in body["cases"]] == [("other", "kept"), ("tea", "tea")]


def test_a_letter_in_a_field_is_not_the_key_for_raw_events(console: Deployment) -> None:
    console.answers |= {"inspect_run": [waiting_run()], "list_run_events": [_events(30)]}
    console.open("runs/1")
    console.page.get_by_label("Find").press_sequentially("e")
    expect(console.page.get_by_role("heading", name="Timeline")).to_be_visible()
    expect(console.page.get_by_role("status").filter(has_text="30 rows")).to_be_visible()
    console.page.get_by_label("Find").fill("turn 17")
    expect(console.page.get_by_role("status").filter(has_text="1 row")).to_be_visible()
    console.page.get_by_label("Find").blur()
    console.page.keyboard.press("e")
    expect(console.page.get_by_role("heading", name="Events")).to_be_visible()


def test_the_time_stays_between_views_and_the_focus_goes_along(console: Deployment) -> None:
    console.open("memory?as_of_ms=1700000000000")
    views = console.page.get_by_role("navigation", name="Views")
    for view, address in (("Recall", "recall?as_of_ms=1700000000000"), ("Runs", "runs")):
        expect(views.get_by_role("link", name=view)).to_have_attribute("href", f"#/{TENANT}/{address}")
    views.get_by_role("link", name="People").click()
    expect(console.page.get_by_role("main")).to_be_focused()
    console.page.get_by_label("User", exact=True).fill(" ann ")
    console.button("Open").click()
    expect(console.page.get_by_role("heading", level=1, name="ann", exact=True)).to_be_visible()


def test_a_run_is_compared_with_others_of_its_version(console: Deployment) -> None:
    run = {**sample("list_evaluations")["runs"][0], "state": "completed"}
    runs = [{**run, "run_id": name, "version": version} for name, version in (("1", "a"), ("2", "a"), ("3", "b"))]
    console.answers |= {
        "get_evaluation": [sample("get_evaluation", run_id="1", version="a", state="completed")],
        "list_evaluations": [sample("list_evaluations", runs=runs)],
    }
    console.open("evaluations/1")
    values = console.page.get_by_label("Compared with").locator("option")
    expect(values).to_have_count(2)
    assert [one.get_attribute("value") for one in values.all()] == ["", "2"]
