import copy
import json
import re
from typing import Any

import pytest
import yaml

from retain.errors import InvalidInput
from retain.models.chat import ChatMessage, ChatRequest
from retain.models.scripted import chat as scripted
from retain.models.scripted.chat import ScriptedChat
from retain.models.scripted.schema import check_script
from tests.models.test_openai_chat import WEATHER
from tests.models.test_scripted import REFUNDS


@pytest.mark.parametrize("script", [REFUNDS, WEATHER], ids=["refunds", "weather"])
def test_a_valid_script_is_returned_as_plain_data_that_survives_json(script: Any) -> None:
    checked = check_script(script)
    assert json.loads(json.dumps(checked)) == checked
    assert check_script(checked) == checked


async def test_a_checked_script_answers_as_the_written_one() -> None:
    request = ChatRequest([ChatMessage("user", "refund for sara@example.com")])
    written = await ScriptedChat(REFUNDS).complete(request)
    assert await ScriptedChat(check_script(REFUNDS)).complete(request) == written


def rule(**changes: Any) -> dict[str, Any]:
    return {"rule": "only", "when": {"find": {"user": r"(?P<n>\d)"}}, "reply": {"text": "{n}"}, **changes}


def call(arguments: object) -> dict[str, Any]:
    return {"calls": [{"tool": "look", "arguments": arguments}]}


INVALID: dict[str, tuple[Any, str]] = {
    "not a script": ([], "script"),
    "no name": ({"rules": [rule()]}, "name"),
    "no rules": ({"name": "x", "rules": []}, "rules"),
    "an unknown field": ({"name": "x", "rules": [rule(then={})]}, "rules.0.then"),
    "an unknown condition": (rule(when={"first": "user"}), "first"),
    "an unknown role": (rule(when={"last": "system"}), "last"),
    "an unknown place": (rule(when={"find": {"mail": "x"}}), "mail"),
    "a tool's name": (rule(when={"tool": "Look Up"}, reply={"text": "x"}), "tool name"),
    "a tool's result from the user": (rule(when={"last": "user", "tool": "look"}, reply={"text": "x"}), "never"),
    "a tool's result that says something": (rule(when={"says": "hello", "tool": "look"}, reply={"text": "x"}), "never"),
    "words of the user in a tool's result": (rule(when={"says": "hello", "last": "tool"}, reply={"text": "x"}), "says"),
    "a text that everything contains": (rule(when={"says": ""}, reply={"text": "x"}), "says"),
    "a group with a given name": (
        rule(when={"find": {"user": "(?P<result>x)"}}, reply={"text": "x"}),
        "is a reserved name",
    ),
    "a given name in a pattern": (rule(when={"find": {"user": "{user}"}}, reply={"text": "x"}), "{user} is used"),
    "the rest without words before it": (rule(reply={"text": "{n} {rest}"}), "{rest} is used"),
    "a path into the user's message": (rule(reply={"text": "{n} {users}"}), "{users} is used"),
    "a pattern that does not compile": (rule(when={"find": {"user": "("}}, reply={"text": "x"}), "not valid"),
    "a counted pattern that does not compile": (
        rule(when={"count": {"n": {"place": "user", "pattern": "("}}}),
        "not valid",
    ),
    "a count that cannot be": (
        rule(when={"count": {"n": {"place": "user", "pattern": "x", "at_least": 2, "at_most": 1}}}),
        "at_most",
    ),
    "a name defined twice": (rule(when={"find": {"user": "(?P<n>x)", "result": "(?P<n>y)"}}), "n is defined twice"),
    "a group in capitals": (rule(when={"find": {"user": "(?P<N>x)"}}, reply={"text": "x"}), "'N'"),
    "a text with an unknown name": (rule(reply={"text": "{m}"}), "{m} is used"),
    "an argument with an unknown name": (rule(reply=call({"deep": [{"er": "{m}"}]})), "{m} is used"),
    "a pattern with a name of a later one": (
        rule(when={"find": {"context": "{n}", "user": "(?P<n>x)"}}),
        "{n} is used",
    ),
    "a number within a text": (rule(reply=call({"x": "about {n:int}"})), "{n:int} must be the whole argument"),
    "an empty reply": (rule(reply={}), "text, calls, or both"),
    "an unreachable rule": (
        {"name": "x", "rules": [{"rule": "all", "when": {}, "reply": {"text": "x"}}, rule()]},
        "never tried",
    ),
    "two rules of one name": ({"name": "x", "rules": [rule(), rule()]}, "'only'"),
}


@pytest.mark.parametrize(("data", "problem"), INVALID.values(), ids=INVALID)
def test_a_defect_is_found_when_the_script_is_staged(data: Any, problem: str) -> None:
    script = {"name": "x", "rules": [data]} if "rule" in data else data
    with pytest.raises(InvalidInput) as caught:
        check_script(copy.deepcopy(script))
    assert caught.value.code == "invalid_script"
    problems = caught.value.details["problems"]
    assert isinstance(problems, list)
    assert any(problem in found for found in problems), problems


def test_the_examples_in_the_documentation_are_valid_scripts() -> None:
    examples = re.findall(r"\n\n((?:    .*\n)+)\n", scripted.__doc__ or "")
    assert [check_script(yaml.safe_load(example))["name"] for example in examples] == ["concierge", "refund_decision"]
