"""Traditional Chinese: read as simplified Chinese is, and found by it as it finds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.memory.recall.languages.han import other_forms, simplified
from retain.memory.recall.preparation import prepare
from retain.memory.recall.query import analyse
from tests.memory.semantic.languages import test_dates, test_kinds
from tests.memory.semantic.languages.test_kinds import NOW_MS, check_order, kinds_of
from tests.memory.semantic.notes import NOTES, fill
from tests.memory.semantic.substrate import Substrate

TRADITIONAL = (
    "我們要粉刷我的廚房。",
    "你上次推薦了什麼廚房顏色？",
    "我之前給廚房選了什麼顏色？",
    "怎麼才能粉刷廚房？",
    "廚房是什麼時候粉刷的？",
    "粉刷我的廚房很難。有什麼好主意？",
    "我在看上次關於廚房的對話。請提醒我顏色。",
)
DATES = {
    "昨天誰來了?": "yesterday",
    "2個星期前": "2 weeks ago",
    "兩個禮拜前": "2 weeks ago",
    "三週前": "3 weeks ago",
    "上週": "last week",
    "上個禮拜": "last week",
    "上週一": "last monday",
    "這個禮拜五": "this friday",
    "這週": "this week",
    "上個月": "last month",
    "這個月": "this month",
    "3個小時前": "3 hours ago",
    "3月5日發生了什麼": "5 march",
}


def test_every_kind_of_query_is_read_as_its_simplified_form() -> None:
    plain = [*test_kinds.SAME["zh"]]
    assert [simplified(text) for text in TRADITIONAL] == plain
    assert [kinds_of(text) for text in TRADITIONAL] == [kinds_of(text) for text in plain]


@pytest.mark.parametrize(("text", "english"), [*DATES.items()])
def test_a_date_in_traditional_characters_is_read(text: str, english: str) -> None:
    test_dates.test_a_date_is_read_as_its_english_equivalent(text, english)


@pytest.mark.parametrize(
    ("text", "query"),
    [("王女士忘記了登錄密碼。", "谁忘记了登录密码?"), ("王女士忘记了登录密码。", "誰忘記了登錄密碼?")],
    ids=["simplified query", "traditional query"],
)
def test_a_word_is_found_in_the_other_characters(text: str, query: str) -> None:
    asked, held = analyse(query, NOW_MS), {*prepare(text, None).stems}
    found = [one for one in asked.stems if held & {*asked.terms(one)}]
    assert [simplified(one) for one in found] == ["忘记", "记了", "了登", "登录", "录密", "密码"]
    assert [one for one in asked.stems if one in held] == ["了登"], "written with the same characters in both"


async def test_a_text_in_the_other_characters_is_found_and_comes_first(substrate: Substrate) -> None:
    await fill(substrate, (*NOTES, "王女士忘记了登录密码。", "李先生的手机充不进电。"))
    [best, *_] = await substrate.hits("誰忘記了登錄密碼?")
    assert best.record.content == "王女士忘记了登录密码。"
    assert "words" in best.found_by
    assert best.components["words"] > 5


@pytest.mark.parametrize("query", ["菜市場早上幾點開門？", "菜市场早上几点开门？"])
async def test_a_correction_comes_before_what_it_corrects_whatever_the_characters(
    substrate: Substrate, query: str
) -> None:
    assert await check_order(substrate, "菜市場早上七點開門。", "菜市場早上改為九點開門。", query) < 0


async def test_what_denies_a_statement_comes_before_it(substrate: Substrate) -> None:
    await check_order(substrate, "包裹禮拜一送達門口。", "包裹禮拜三送達門口，不是禮拜一。", "包裹哪天送達門口？")


async def test_instructions_and_preferences_are_those_of_a_request(substrate: Substrate) -> None:
    instruction, stated, other = "當我問路線的時候，請用英里。", "我更喜歡平坦的路。", "我認識平坦的路。"
    await fill(substrate, (*NOTES, instruction, other, stated))
    hits = await substrate.hits("請推薦平坦的路。", top_k=50)
    assert {hit.record.content for hit in hits if hit.components["standing"] > 0} == {instruction}
    assert {hit.record.content for hit in hits if hit.components["preference"] > 0} == {stated}


@given(text=st.text(max_size=40))
def test_simplifying_keeps_the_length_and_changes_nothing_twice(text: str) -> None:
    assert len(simplified(text)) == len(text)
    assert simplified(simplified(text)) == simplified(text)


@given(word=st.text("記错錯說说台臺發发ab里裡ü", min_size=1, max_size=3))
def test_every_form_of_a_word_has_the_same_simplified_one(word: str) -> None:
    forms = other_forms(word)
    assert {simplified(form) for form in forms} <= {simplified(word)}
    assert word not in forms
    assert len({*forms}) == len(forms)


def test_a_word_of_another_script_has_no_other_form() -> None:
    assert [other_forms(word) for word in ("Rechnung", "Übung", "счёт", "あした", "12")] == [()] * 5
