"""Records are found immediately, by words or by meaning, in any script."""

from __future__ import annotations

import pytest

from retain.limits.vectorize import GRACE_MS
from tests.memory.semantic.indexes import LaggingIndex, SilentIndex
from tests.memory.semantic.notes import NOTES, fill
from tests.memory.semantic.substrate import PERSON, Substrate
from tests.support.faults import Crash, Fault, Faults


async def test_a_write_is_found_immediately_by_its_words_even_if_the_index_lags(substrate: Substrate) -> None:
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    await fill(substrate)
    assert substrate.vectors.held() == {}
    assert (await substrate.found("Who repairs engines?"))[0] == "Bob repairs engines of old ships."


async def test_a_write_is_found_immediately_by_its_meaning_alone_even_if_the_index_lags(substrate: Substrate) -> None:
    """The query has no word in common with any note."""
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    await fill(substrate)
    assert (await substrate.found("feline napping", top_k=1)) == ["The cat of Ann sleeps on the sofa."]
    substrate.clock.advance(30_000)
    assert (await substrate.found("feline napping", top_k=1)) == ["The cat of Ann sleeps on the sofa."]
    assert len(substrate.vectors.held()) == len(NOTES)


async def test_a_fresh_write_is_found_by_meaning_among_many_that_the_index_already_shows(substrate: Substrate) -> None:
    await fill(substrate, tuple(f"Invoice {number} is paid within thirty days." for number in range(150)))
    substrate.clock.advance(3_600_000)
    await substrate.indexer().reconcile()
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    await substrate.store("The cat of Ann sleeps on the sofa.")
    assert (await substrate.found("feline napping", top_k=1)) == ["The cat of Ann sleeps on the sofa."]


async def test_a_deleted_memory_is_not_found_even_if_the_index_still_has_it(substrate: Substrate) -> None:
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 0)
    record_id = await substrate.store(NOTES[0])
    assert await substrate.found("bicycle") == [NOTES[0]]
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    await substrate.memory().delete(record_id, PERSON)
    assert substrate.vectors.held().keys() == {f"{record_id}#0"}
    assert await substrate.found("bicycle") == []


async def test_an_edited_memory_is_found_immediately_by_its_new_meaning_even_if_the_index_shows_the_old(
    substrate: Substrate,
) -> None:
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    await fill(substrate, (NOTES[0], *NOTES[2:]))
    record_id = await substrate.store("Ships have engines.")
    substrate.clock.advance(3_600_000)
    await substrate.indexer().reconcile()
    assert (await substrate.hits("ship engine"))[0].record.id == record_id
    await substrate.memory().edit(record_id, {"content": NOTES[1]}, PERSON)
    at_once = await substrate.hits("feline napping", top_k=1)
    old = {hit.record.id: hit.components["vector"] for hit in await substrate.hits("ship engine", top_k=50)}
    substrate.clock.advance(30_000)
    later = await substrate.hits("feline napping", top_k=1)
    assert [hit.record.id for hit in at_once] == [hit.record.id for hit in later] == [record_id]
    assert at_once[0].components["vector"] == pytest.approx(later[0].components["vector"], abs=0.6)
    assert old[record_id] < 1.0, "it is not ranked by its old meaning"


@pytest.mark.parametrize("text_first", [False, True], ids=["metadata", "text, then metadata"])
async def test_a_fresh_write_is_found_by_its_meaning_after_an_edit_of_something_else(
    substrate: Substrate, text_first: bool
) -> None:
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    await fill(substrate, (NOTES[0], *NOTES[2:]))
    record_id = await substrate.store("Ships have engines." if text_first else NOTES[1])
    if text_first:
        substrate.clock.advance(3_600_000)
        await substrate.indexer().reconcile()
        await substrate.found("engines")
        await substrate.memory().edit(record_id, {"content": NOTES[1]}, PERSON)
    await substrate.memory().edit(record_id, {"metadata": {"checked": True}}, PERSON)
    assert await substrate.found("feline napping", top_k=1) == [NOTES[1]]


async def test_an_edit_that_keeps_its_meaning_leaves_a_memory_as_similar_as_it_was(
    substrate: Substrate,
) -> None:
    """The index shows its vector as before: the rough estimate from the signature must not replace it."""
    await fill(substrate, NOTES)
    record_id = await substrate.store("Ships have engines.")
    [before] = await substrate.hits("ship engine", top_k=1)
    await substrate.memory().edit(record_id, {"importance": 0.9}, PERSON)
    [after] = await substrate.hits("ship engine", top_k=1)
    assert after.record.id == record_id
    assert after.components["vector"] == before.components["vector"]


async def test_an_edit_whose_writer_died_is_found_by_its_meaning_before_and_after_it_is_settled(
    substrate: Substrate,
) -> None:
    index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)
    substrate.index = index
    await fill(substrate, (NOTES[0], *NOTES[2:]))
    record_id = await substrate.store("Ships have engines.")
    substrate.clock.advance(3_600_000)
    await substrate.indexer().reconcile()
    await substrate.found("engines")
    faults = Faults(lambda owner: None)
    substrate.sql = faults.wrap("sql", substrate.d1, faults.life("writer"))
    # The first batch adds the index debt of the edit, the second commits it, and the third begins to settle it.
    faults.plan(Fault(Crash(), nth=3, point="sql.batch"))
    with pytest.raises(Crash):
        await substrate.memory().edit(record_id, {"content": NOTES[1]}, PERSON)
    substrate.sql = substrate.d1
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 30_000)  # its pending writes are lost as well
    assert (await substrate.record(record_id)).content == NOTES[1]
    assert await substrate.found("feline napping", top_k=1) == [NOTES[1]]
    substrate.clock.advance(GRACE_MS + 1)
    assert (await substrate.indexer().reconcile()).settled == 1
    assert await substrate.found("feline napping", top_k=1) == [NOTES[1]]
    assert (await substrate.hits("ship engine", top_k=50))[0].record.id != record_id


async def test_an_edited_memory_is_found_immediately_by_its_new_words(substrate: Substrate) -> None:
    record_id = await substrate.store(NOTES[0])
    await substrate.memory().edit(record_id, {"content": "Ann sold her piano."}, PERSON)
    assert await substrate.found("piano") == ["Ann sold her piano."]
    assert (await substrate.hits("bicycle"))[0].components["words"] == 0.0


async def test_what_only_words_find_is_never_dropped(substrate: Substrate) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    await fill(substrate, (*NOTES, *(f"Filler number {number} about parcels." for number in range(120))))
    substrate.clock.advance(3_600_000)
    for query, expected in (("engines", NOTES[2]), ("thursday meetings", NOTES[3]), ("sofas", NOTES[1])):
        assert (await substrate.found(query, top_k=1)) == [expected]


async def test_a_text_without_a_vector_is_found_by_its_words(substrate: Substrate) -> None:
    contents = ("Заказ отменён покупателем", "Παραγγελία του πελάτη ακυρώθηκε χθες", "주문이 취소되었습니다")
    await fill(substrate, contents)
    await fill(substrate)
    assert (
        substrate.vectors.held()
        .keys()
        .isdisjoint(f"{record.id}#0" for record in await substrate.listed() if record.content in contents)
    )
    for content in contents:
        for word in content.split():
            assert (await substrate.found(word))[0] == content, word


async def test_a_query_without_a_vector_finds_by_words_alone(substrate: Substrate) -> None:
    await fill(substrate)
    await substrate.store("Ann grüßt Jürgen aus Ætna.")
    assert (await substrate.found("Ætna"))[0] == "Ann grüßt Jürgen aus Ætna."
    assert (await substrate.found("JURGEN"))[0] == "Ann grüßt Jürgen aus Ætna."


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("The refunds were declined.", "refund declining"),
        ("Ann is running a marathon.", "runs"),
        ("A café in Zürich.", "cafe zurich"),
        ("Payment by IBAN only.", "iban"),
        ("The ΟΔΟΣ is closed.", "οδος"),
        ("Λόγος ήταν σαφής", "λόγος"),
        ("Λόγος ήταν σαφής", "ΛΟΓΟΣ"),
        ("It weighs 5µg.", "5μg"),
        ("Straße nach Ulm", "strasse"),
    ],
    ids=lambda value: value,
)
async def test_words_match_across_their_forms(substrate: Substrate, stored: str, query: str) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    await fill(substrate)
    await substrate.store(stored)
    [best, *_] = await substrate.hits(query)
    assert best.record.content == stored
    assert best.components["words"] > 0


async def test_a_word_inside_a_chinese_sentence_is_found(substrate: Substrate) -> None:
    await fill(substrate)
    await substrate.store("客户的订单已取消")
    assert (await substrate.found("订单"))[:1] == ["客户的订单已取消"]


UNSPACED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Chinese": ("客户的订单已取消。退款三天内到账。", ("订单", "退款", "客户", "取消", "款", "订单取消了吗")),
    "Japanese": ("田中さんは緑茶が好きです。", ("緑茶", "茶", "田中", "好き", "\u304c")),
    "Japanese, half width": ("ｵｰﾀﾞｰ ﾊ ｷｬﾝｾﾙ ﾃﾞｽ", ("ｵｰﾀﾞ", "ｷｬﾝｾﾙ")),
    "Thai": ("ลูกค้ายกเลิกคำสั่งซื้อแล้ว", ("คำสั่งซื้อ", "ลูกค้า", "ยกเลิก")),
    "Lao": ("ລູກຄ້າຍົກເລີກຄຳສັ່ງຊື້ແລ້ວ", ("ລູກຄ້າ", "ຄຳສັ່ງ")),
    "with a word between": ("我买iPhone手机壳", ("iphone", "手机", "手机壳", "买")),
}


@pytest.mark.parametrize("script", UNSPACED)
async def test_a_word_is_found_in_a_sentence_without_spaces(substrate: Substrate, script: str) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    await fill(substrate)
    sentence, queries = UNSPACED[script]
    record_id = await substrate.store(sentence)
    await substrate.store("今日の天気は晴れ")
    substrate.clock.advance(3_600_000)
    for query in queries:
        best = (await substrate.hits(query))[0]
        assert best.record.id == record_id, query
        assert best.components["words"] > 0
    edited = await substrate.memory().edit(record_id, {"content": f"{sentence}{sentence}"}, PERSON)
    assert (await substrate.found(queries[0]))[:1] == [edited.content]


async def test_a_quotation_and_an_order_number_are_exact_terms_between_letters_without_spaces(
    substrate: Substrate,
) -> None:
    for content in ("客户说订单AB-1001号已取消了", "客户说订单AB-1002号已取消了", "已取订单号取消"):
        await substrate.store(content)
    for query, expected in (("订单AB-1001号怎么样", {0}), ("\u201c已取消\u201d", {0, 1})):
        exact = {hit.record.content: hit.components["exact"] for hit in await substrate.hits(query)}
        contents = [record.content for record in await substrate.listed()]
        assert {contents.index(content) for content, value in exact.items() if value > 0} == expected


async def test_a_long_text_is_found_by_a_part_of_it(substrate: Substrate) -> None:
    pages = [f"Page {page}. " + "The harbour was quiet and the boats lay still. " * 30 for page in range(5)]
    pages[3] += "A volcano erupted near the observatory. "
    await fill(substrate, (*NOTES, " ".join(pages)))
    assert (await substrate.found("eruption of the volcano", top_k=1))[0].startswith("Page 0.")
