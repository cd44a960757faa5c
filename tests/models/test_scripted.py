import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured, UpstreamFailed
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, ToolCall
from retain.models.scripted.chat import Reply, Scene, Script, ScriptedChat, ScriptRule, When, fill, match
from retain.models.scripted.schema import check_script

EMAIL = r"(?P<email>[\w.+-]+@[\w-]+\.\w+)"
REFUNDS: Script = {
    "name": "refund_decision",
    "rules": [
        {
            "rule": "look the history up",
            "when": {"last": "user", "find": {"user": EMAIL}},
            "reply": {
                "text": "I look up {email}.",
                "calls": [{"tool": "recall_memory", "arguments": {"query": "refund history for {email}", "top_k": 5}}],
            },
        },
        {
            "rule": "many refunds",
            "when": {
                "tool": "recall_memory",
                "find": {"user": EMAIL},
                "count": {"refunds": {"place": "result", "pattern": "approved for {email}", "at_least": 3}},
            },
            "reply": {"text": "ESCALATE: {email} was refunded {refunds} times."},
        },
        {"rule": "few refunds", "when": {"tool": "recall_memory"}, "reply": {"text": "APPROVE"}},
    ],
}


def history(*emails: str) -> str:
    return json.dumps({"memories": [{"content": f"Refund approved for {email}"} for email in emails]})


async def decide(recalled: str) -> ChatReply:
    """Run the script as an agent's loop does, with this answer from the tool."""
    model = ScriptedChat(REFUNDS)
    messages = [ChatMessage("system", "You decide."), ChatMessage("user", "sara@example.com wants her money back")]
    reply = await model.complete(ChatRequest(messages))
    [call] = reply.tool_calls
    assert (call.id, call.name) == ("call_1_1", "recall_memory")
    assert call.arguments == {"query": "refund history for sara@example.com", "top_k": 5}
    messages += [ChatMessage("assistant", reply.content, reply.tool_calls), ChatMessage("tool", recalled, (), call.id)]
    return await model.complete(ChatRequest(messages))


SARA, BOB = "sara@example.com", "bob@example.com"
DECISIONS = {
    "nothing recalled": ([], "APPROVE"),
    "two refunds": ([SARA, SARA], "APPROVE"),
    "three refunds": ([SARA, SARA, SARA], "ESCALATE: sara@example.com was refunded 3 times."),
    "many refunds, of others": ([SARA, BOB, BOB, BOB, SARA], "APPROVE"),
    "a name that only matches when dots are wild": (["sara@exampleXcom"] * 3, "APPROVE"),
}


@pytest.mark.parametrize(("emails", "expected"), DECISIONS.values(), ids=DECISIONS)
async def test_the_decision_follows_from_what_the_tool_answered(emails: list[str], expected: str) -> None:
    assert (await decide(history(*emails))).content == expected


async def test_equal_conversations_get_equal_replies() -> None:
    assert await decide(history(SARA)) == await decide(history(SARA))


async def test_no_fitting_rule_is_an_error_that_names_the_last_message() -> None:
    with pytest.raises(UpstreamFailed) as caught:
        await ScriptedChat(REFUNDS).complete(ChatRequest([ChatMessage("user", "no address here")]))
    assert caught.value.code == "script_exhausted"
    assert caught.value.details == {"script": "refund_decision", "role": "user", "tool": None}
    assert "'user'" in caught.value.message


async def test_the_name_says_that_the_model_is_scripted() -> None:
    assert ScriptedChat(REFUNDS).name == "scripted/refund_decision"


LOOK = ToolCall("a", "look", {})
ASK = ToolCall("b", "ask", {})
TALK = (
    ChatMessage("system", "Earlier: order 7 was late."),
    ChatMessage("system", "House rules."),
    ChatMessage("user", "old question"),
    ChatMessage("assistant", "", (LOOK,)),
    ChatMessage("tool", "old result", (), "a"),
    ChatMessage("assistant", "old answer"),
    ChatMessage("user", "new question about order 9"),
    ChatMessage("assistant", "", (LOOK, ASK)),
    ChatMessage("tool", "seen 3 birds", (), "a"),
    ChatMessage("tool", "heard 4 birds", (), "b"),
)

CONDITIONS: dict[str, tuple[When, dict[str, str] | None]] = {
    "nothing is asked": ({}, {}),
    "last is a tool's": ({"last": "tool"}, {}),
    "last is the user's": ({"last": "user"}, None),
    "the tool of the last result": ({"tool": "ask"}, {}),
    "a tool that answered before": ({"tool": "look"}, None),
    "results of this request only": ({"results": 2}, {}),
    "another number of results": ({"results": 3}, None),
    "the last user message": ({"find": {"user": r"order (?P<order>\d)"}}, {"order": "9"}),
    "not an earlier one": ({"find": {"user": "old"}}, None),
    "every system message": ({"find": {"context": r"(?s)order (?P<late>\d).*rules"}}, {"late": "7"}),
    "the last result": ({"find": {"result": r"(?P<birds>\d)"}}, {"birds": "4"}),
    "not the result before": ({"find": {"result": "seen"}}, None),
    "all results of the request": ({"find": {"results": r"seen (?P<seen>\d)"}}, {"seen": "3"}),
    "not results before the request": ({"find": {"results": "old"}}, None),
    "several patterns for one place": (
        {"find": {"results": [r"seen (?P<seen>\d)", r"heard (?P<heard>\d)"]}},
        {"seen": "3", "heard": "4"},
    ),
    "one of several is missing": ({"find": {"results": ["seen", "smelt"]}}, None),
    "a group that takes no part": ({"find": {"user": r"order(?P<hash> #)?"}}, {"hash": ""}),
    "a pattern with an earlier group": (
        {"find": {"user": r"(?P<kind>order) 9", "context": "{kind} 7"}},
        {"kind": "order"},
    ),
    "a count": ({"count": {"n": {"place": "results", "pattern": "birds", "at_least": 2}}}, {"n": "2"}),
    "a count that is too low": ({"count": {"n": {"place": "result", "pattern": "birds", "at_least": 2}}}, None),
    "a count that is too high": ({"count": {"n": {"place": "results", "pattern": "birds", "at_most": 1}}}, None),
    "absence": ({"count": {"n": {"place": "results", "pattern": "fish", "at_most": 0}}}, {"n": "0"}),
    "all conditions must hold": ({"last": "tool", "results": 2, "find": {"user": "missing"}}, None),
}


@pytest.mark.parametrize(("when", "expected"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions_look_at_the_current_request(when: When, expected: dict[str, str] | None) -> None:
    assert match(when, Scene.of(TALK)) == expected


@pytest.mark.parametrize(
    ("says", "user", "fits"),
    [("Remember", "please REMEMBER this", True), ("remember", "forget this", False), ("a.c", "abc", False)],
    ids=["in any case", "other words", "literally"],
)
async def test_a_rule_can_want_words_of_the_user_without_a_pattern(says: str, user: str, fits: bool) -> None:
    when: When = {"says": says}
    assert (match(when, Scene.of([*TALK, ChatMessage("user", user)])) is not None) is fits
    assert match({"says": ""}, Scene.of(TALK)) is None, "the last message is a tool's"


async def test_a_reply_reads_what_follows_the_words() -> None:
    rule: ScriptRule = {"rule": "keep", "when": {"says": "remember:"}, "reply": {"text": "<{rest}>"}}
    model = ScriptedChat(check_script({"name": "only", "rules": [rule]}))
    reply = await model.complete(ChatRequest([ChatMessage("user", "Please Remember:  the İ key {n}. ")]))
    assert reply.content == "<the İ key {n}.>"


FOUND = json.dumps({"memories": [{"content": "The key is blue.", "score": 0.5}], "none": None})
GIVEN: dict[str, tuple[str, str, str]] = {
    "the user's message": ("{user}", FOUND, "Where?"),
    "the whole result": ("It says: {result}", "on Monday", "It says: on Monday"),
    "a text in the result": ("{result.memories.0.content}", FOUND, "The key is blue."),
    "a number in the result": ("{result.memories.0.score}", FOUND, "0.5"),
    "null in the result": ("{result.none}", FOUND, "null"),
    "braces in the result": ("{result.a}", '{"a": "{user}"}', "{user}"),
    "no such item": ("{result.memories.1.content}", FOUND, "nothing"),
    "no such key": ("{result.facts}", FOUND, "nothing"),
    "a key in a list": ("{result.memories.first}", FOUND, "nothing"),
    "a key in a text": ("{result.memories.0.content.x}", FOUND, "nothing"),
    "a result that is not JSON": ("{result.memories}", "on Monday", "nothing"),
}


@pytest.mark.parametrize(("text", "result", "expected"), GIVEN.values(), ids=GIVEN)
async def test_a_reply_reads_the_message_and_the_result_and_fits_only_what_is_there(
    text: str, result: str, expected: str
) -> None:
    rules: list[ScriptRule] = [
        {"rule": "tell", "when": {"tool": "look"}, "reply": {"text": text}},
        {"rule": "nothing", "when": {"tool": "look"}, "reply": {"text": "nothing"}},
    ]
    talk = [
        ChatMessage("user", "Where?"),
        ChatMessage("assistant", "", (LOOK,)),
        ChatMessage("tool", result, (), LOOK.id),
    ]
    reply = await ScriptedChat(check_script({"name": "only", "rules": rules})).complete(ChatRequest(talk))
    assert reply.content == expected


async def reply_to(user: str, reply: Reply, pattern: str = r"(?P<n>\S+) (?P<word>\S+)") -> ChatReply:
    rule: ScriptRule = {"rule": "only", "when": {"find": {"user": pattern}}, "reply": reply}
    return await ScriptedChat({"name": "only", "rules": [rule]}).complete(
        ChatRequest([*TALK, ChatMessage("user", user)])
    )


ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "text": ("{n} of {word}", "7 of oak"),
    "a whole number": ("{n:int}", 7),
    "a number": ("{n:number}", 7.0),
    "a digit as text": ("{n}", "7"),
    "nested": ({"a": [{"b": "{word}"}, 1, None, True]}, {"a": [{"b": "oak"}, 1, None, True]}),
    "other braces": ('{"n": {}} {0} {N}', '{"n": {}} {0} {N}'),
}


@pytest.mark.parametrize(("template", "expected"), ARGUMENTS.values(), ids=ARGUMENTS)
async def test_arguments_are_filled_in(template: Any, expected: Any) -> None:
    reply = await reply_to("7 oak", {"calls": [{"tool": "plant", "arguments": {"x": template}}]})
    assert reply.tool_calls[0].arguments == {"x": expected}
    assert type(reply.tool_calls[0].arguments["x"]) is type(expected)


async def test_calls_are_numbered_by_turn_and_place() -> None:
    reply = await reply_to("7 oak", {"calls": [{"tool": "plant", "arguments": {}}, {"tool": "water", "arguments": {}}]})
    assert [call.id for call in reply.tool_calls] == ["call_4_1", "call_4_2"]


async def test_what_was_found_is_not_filled_in_again() -> None:
    assert (await reply_to("{word} {n}", {"text": "{n}-{word}"})).content == "{word}-{n}"


async def test_text_where_a_number_is_wanted_is_a_defect_of_the_script() -> None:
    with pytest.raises(Misconfigured) as caught:
        await reply_to("seven oak", {"calls": [{"tool": "plant", "arguments": {"x": "{n:int}"}}]})
    assert caught.value.code == "invalid_script"


def test_a_name_that_nothing_defines_is_a_defect_of_the_script() -> None:
    with pytest.raises(Misconfigured) as caught:
        fill("{who}", {"n": "7"})
    assert caught.value.code == "invalid_script"


async def test_usage_is_a_quarter_of_the_characters() -> None:
    model = ScriptedChat({"name": "only", "rules": [{"rule": "only", "when": {}, "reply": {"text": "12345"}}]})
    reply = await model.complete(ChatRequest([ChatMessage("system", "123"), ChatMessage("user", "1234")]))
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (2, 2)


@given(st.text())
def test_text_that_was_found_is_searched_for_literally(text: str) -> None:
    scene = Scene.of([ChatMessage("system", f"<{text}>"), ChatMessage("user", text)])
    when: When = {"find": {"user": r"\A(?P<all>(?s:.*))\Z", "context": r"\A<{all}>\Z"}}
    assert match(when, scene) == {"all": text}
