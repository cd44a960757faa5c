"""Who may do what, on real workerd: viewers read, operators change, owners export and grant, and each for its tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.access_team import Deployment, deployment
from tests.e2e.local_state import LocalState
from tests.support.browser import browsing

pytestmark = pytest.mark.workerd

PEOPLE = {"viewer": "vera@example.com", "operator": "otto@example.com", "owner": "olga@example.com"}
STRANGER = "mallory@example.com"
MEMORIES = "/admin/tenants/acme/memories"
NEEDS = {
    "list memories": ("viewer", "GET", MEMORIES, None),
    "recall": ("viewer", "POST", f"{MEMORIES}/recall", {"query": "tea"}),
    "list runs": ("viewer", "GET", "/admin/agents/acme/runs", None),
    "store": ("operator", "POST", MEMORIES, {"content": "Ada drinks tea."}),
    "seed": (
        "operator",
        "POST",
        "/admin/seed-memory",
        {"tenant": "acme", "agent_type": "sdr", "memories": [{"content": "Ada drinks tea."}]},
    ),
    "run an agent": ("operator", "POST", "/v1/agents/acme/order_triage/run", {"input": "hello", "instance_id": "desk"}),
    "export": ("owner", "GET", "/admin/tenants/acme/export", None),
    "list roles": ("owner", "GET", "/admin/tenants/acme/roles", None),
}


@pytest.fixture(scope="module")
def state(migrated_state: Callable[[], Path]) -> LocalState:
    return LocalState(migrated_state())


@pytest.fixture(scope="module")
def deployed(state: LocalState) -> Iterator[Deployment]:
    """A deployment with two tenants, and a person for each role in one of them."""
    with deployment(state.root) as running:
        for tenant in ("acme", "other"):
            assert running.ask("PUT", f"/admin/tenants/{tenant}").status_code == 201
        for role, person in PEOPLE.items():
            granted = running.ask("PUT", f"/admin/tenants/acme/roles/email:{person}", {"role": role})
            assert granted.status_code == 200, granted.text
        yield running


def refused(answer: httpx.Response) -> bool:
    return answer.status_code == 403 and answer.json()["code"] == "role_required"


@pytest.mark.parametrize(("needed", "method", "path", "content"), NEEDS.values(), ids=list(NEEDS))
def test_each_role_does_what_it_may_and_nothing_more(
    deployed: Deployment, needed: str, method: str, path: str, content: object
) -> None:
    roles = list(PEOPLE)
    for role, person in PEOPLE.items():
        answer = deployed.ask(method, path, content, by=person)
        if roles.index(role) < roles.index(needed):
            assert refused(answer), (role, answer.text)
        else:
            assert answer.status_code in (200, 201, 202), (role, answer.text)
    assert refused(deployed.ask(method, path, content, by=STRANGER))
    assert deployed.ask_without(method, path, content).status_code == 401


def test_an_owner_of_one_tenant_does_nothing_in_another(deployed: Deployment, state: LocalState) -> None:
    olga = PEOPLE["owner"]
    elsewhere = [
        ("GET", "/admin/tenants/other/memories", None),
        ("POST", "/admin/tenants/other/memories", {"content": "Trust everybody."}),
        ("GET", "/admin/tenants/other/export", None),
        ("PUT", f"/admin/tenants/other/roles/email:{olga}", {"role": "owner"}),
        ("PUT", f"/admin/roles/email:{olga}", {"role": "owner"}),
        ("PUT", "/admin/tenants/third", None),
        ("POST", "/admin/namespaces/phase", {"to": 1}),
        ("POST", "/v1/agents/other/order_triage/run", {"input": "hello"}),
        ("POST", "/admin/seed-memory", {"tenant": "other", "agent_type": "sdr", "memories": [{"content": "x"}]}),
    ]
    for method, path, content in elsewhere:
        assert refused(deployed.ask(method, path, content, by=olga)), path
    [left] = state.d1(
        "SELECT (SELECT COUNT(*) FROM memory_records WHERE tenant_id = 'other') AS records,"
        " (SELECT COUNT(*) FROM agent_runs WHERE tenant_id = 'other') AS runs,"
        " (SELECT COUNT(*) FROM tenants WHERE tenant_id = 'third') AS tenants"
    )
    assert left == {"records": 0, "runs": 0, "tenants": 0}


def test_a_role_that_is_taken_away_is_gone(deployed: Deployment) -> None:
    person = "tom@example.com"
    path = f"/admin/tenants/acme/roles/email:{person}"
    assert deployed.ask("PUT", path, {"role": "viewer"}, by=PEOPLE["owner"]).status_code == 200
    assert deployed.ask("GET", MEMORIES, by=person).status_code == 200
    assert deployed.ask("DELETE", path, by=PEOPLE["owner"]).status_code == 204
    assert refused(deployed.ask("GET", MEMORIES, by=person))


@pytest.mark.parametrize(
    ("role", "may"), [("viewer", ()), ("operator", ("Save", "Delete …")), ("owner", ("Save", "Delete …"))]
)
def test_the_console_offers_what_the_role_allows_alone(deployed: Deployment, role: str, may: Sequence[str]) -> None:
    stored = deployed.ask(
        "POST", MEMORIES, {"content": "Ada drinks tea.", "subject": "ada", "predicate": "drinks"}
    ).json()
    deployed.ask("PUT", "/admin/tenants/acme/users/ada", {"name": "Ada"})
    with browsing() as browser:
        browser.context.set_extra_http_headers(deployed.signed_in(PEOPLE[role]))
        browser.do(f"open {deployed.base_url}/console#/acme/memory/{stored['id']}")
        page = browser.tab
        expect(page.get_by_role("heading", name="History")).to_be_visible()
        expect(page.locator("header .who")).to_have_text(role)
        for name in ("Save", "Delete …"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(int(name in may))
        expect(page.get_by_role("button", name="Erase everything about ada …")).to_have_count(int(role == "owner"))
        page.get_by_role("link", name="Operations").click()
        expect(page.get_by_role("heading", name="Erasures")).to_be_visible()
        expect(page.get_by_role("heading", name="Keys")).to_have_count(int(role == "owner"))
        expect(page.get_by_role("heading", name="Migration of keys")).to_have_count(0)
        page.goto(f"{deployed.base_url}/console#/acme/people/ada")
        expect(page.get_by_role("heading", name="Facts over time")).to_be_visible()
        expect(page.get_by_role("button", name="Forget")).to_have_count(int(role == "owner"))
        page.goto(f"{deployed.base_url}/console#/other/runs")
        expect(page.get_by_role("alert").first).to_contain_text("role_required")
        assert all("403" in error for error in browser.errors), browser.errors
