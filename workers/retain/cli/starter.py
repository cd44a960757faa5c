"""Start an agent: its definition, a script instead of a model, and a test.

    retain new concierge

The files run without a key, and are meant to be changed. Nothing is overwritten.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from retain.cli.project import require_project
from retain.errors import RetainError
from retain.identifiers import check_agent_type

_DEFINITION = """\
# What the agent is and may do: docs/agents.md lists every field.
type: AGENT
description: Answers questions, and remembers what it is told.
instructions: |
  You are a helpful assistant.
  When you are told something worth keeping, store it with store_memory.
  When you are asked something, recall what is known before you answer.
memory_config:
  long_term_enabled: true   # gives it recall_memory and store_memory, in a scope of its own
  recall: both              # and what is known comes into its context before its first turn
model:
  script: AGENT   # who answers while there is no real model
"""

_SCRIPT = """\
# What the agent answers while there is no real model: the first rule that fits. The tools and the memory are real.
name: AGENT
rules:
  - rule: a tool failed
    when: {last: tool}
    reply: {text: 'That did not work: {result.error.message}'}
  - rule: keep what it is told
    when: {says: 'remember:'}
    reply:
      calls: [{tool: store_memory, arguments: {content: '{rest}'}}]
  - rule: confirm that it is kept
    when: {tool: store_memory}
    reply: {text: Noted.}
  - rule: look up what is known
    when: {last: user}
    reply:
      calls: [{tool: recall_memory, arguments: {query: '{user}'}}]
  - rule: tell what is known
    when: {tool: recall_memory}
    reply: {text: 'I know this: {result.memories.0.content}'}
  - rule: nothing is known
    when: {tool: recall_memory}
    reply: {text: I do not know anything about that.}
"""

_TEST = '''\
"""What the agent AGENT does, on the real workerd. Its model is its script, so it needs no key."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import httpx
import pytest

from tools.local_server import LocalServer, serving

pytestmark = pytest.mark.workerd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A local server with a fresh state."""
    with serving(tmp_path_factory.mktemp("state")) as running:
        yield running


@pytest.fixture
def agent(server: LocalServer) -> Iterator[httpx.Client]:
    """The agent, in a tenant that remembers nothing yet: tests may run in any order."""
    tenant = f"t-{uuid.uuid4()}"
    httpx.put(f"{server.base_url}/admin/tenants/{tenant}", timeout=60, trust_env=False).raise_for_status()
    base_url = f"{server.base_url}/v1/agents/{tenant}/AGENT"
    with httpx.Client(base_url=base_url, timeout=60, trust_env=False) as client:
        yield client


def say(agent: httpx.Client, text: str) -> str:
    """Return what the agent answers."""
    run = agent.post("/run", json={"input": text}).json()
    assert run["status"] == "completed", run
    output: str = run["output"]
    return output


def test_it_knows_nothing_before_it_is_told(agent: httpx.Client) -> None:
    assert say(agent, "Where is the spare key?") == "I do not know anything about that."


def test_every_instance_knows_what_one_was_told(agent: httpx.Client) -> None:
    assert say(agent, "Remember: the spare key is in the blue box.") == "Noted."
    assert say(agent, "Where is the spare key?") == "I know this: the spare key is in the blue box."
'''


def starter_files(agent: str) -> dict[str, str]:
    """Return the files of a new agent: path relative to the project, and content. Raises: InvalidInput."""
    check_agent_type(agent)
    templates = {
        f"agents/{agent}.yaml": _DEFINITION,
        f"agents/scripts/{agent}.yaml": _SCRIPT,
        f"agents/tests/test_{agent}.py": _TEST,
    }
    return {path: template.replace("AGENT", agent) for path, template in templates.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files unless one of them exists; return the exit status."""
    parser = argparse.ArgumentParser(prog="retain new", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("agent", metavar="AGENT", help="its name: lower-case letters, digits and _, at most 32")
    agent: str = parser.parse_args(arguments).agent
    try:
        files = starter_files(agent)
        root = require_project().root
    except RetainError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
        return 1
    existing = [path for path in files if (root / path).exists()]
    if existing:
        print(f"nothing was written: {', '.join(existing)} already exists", file=sys.stderr)
        return 1
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
        print(f"wrote {path}")
    print("\nNext:")
    print(f"   .venv/bin/python -m pytest -q agents/tests/test_{agent}.py   its test, on the real workerd")
    print("   make dev                                serve it, and in a second terminal run it:")
    print(f"   curl http://127.0.0.1:8787/v1/agents/default/{agent}/run \\")
    print("     -H 'content-type: application/json' -d '{\"input\": \"Remember: the key is in the box.\"}'")
    return 0
