"""The table for many languages: its words and pieces, and that it brings together what means the same."""

import asyncio
import hashlib
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.models.embedders.multilingual import MAX_WORD_CHARACTERS, fold, split_word, words
from retain.models.embedders.static import MULTILINGUAL, TABLES, StaticEmbedder, StaticTable, table_file
from retain.models.embedding import Embedder
from retain.testing import EmbedderSuite
from tests.support.instances import ROOT

FILE = ROOT / "models" / TABLES[MULTILINGUAL]
LARGEST_BYTES = 8_000_000
_SHIPPED = StaticEmbedder(FILE, model=MULTILINGUAL)

WORDS = {
    "German": ("Die Straße in Köln", "die strasse in koln"),
    "French": ("l'été, déjà", "l ete deja"),
    "a word and a number": ("Zimmer204b", "zimmer 204 b"),
    "Russian": ("Ёлка й", "елка и"),
    "Greek": ("Καλημέρα", "καλημερα"),
    "Arabic with vowels": ("كَتَبَ", "كتب"),
    "Hebrew with points": ("שָׁלוֹם", "שלום"),
    "Hindi keeps its vowel signs": ("नमस्ते दुनिया।", "नमस्ते दुनिया"),
    "Korean": ("한국어, 문장", "한국어 문장"),
    "Chinese is one run": ("我的电话,是", "我的电话 是"),
    "Japanese beside Latin letters": ("予約IDは第1便", "予約 id は第 1 便"),
    "Thai": ("สวัสดีครับ", "สวัสดีครับ"),
    "full width": ("\uff21\uff22\uff11", "ab 1"),
    "punctuation": ("¿Qué? (a_b)", "que a b"),
    "nothing": (" — ", ""),
}


@pytest.mark.parametrize(("text", "expected"), WORDS.values(), ids=WORDS)
def test_a_text_is_cut_into_folded_words_of_one_script(text: str, expected: str) -> None:
    assert words(text) == expected.split()


VOCABULARY = {
    piece: number
    for number, piece in enumerate(["blut", "hoch", "druck", "##ck", "##e", "电话", "电", "号", "1", "##2"])
}

PIECES = {
    "a compound": ("bluthochdruck", "blut hoch druck"),
    "a piece within a word comes before a word": ("blute", "blut ##e"),
    "characters without a piece are skipped": ("xblut", "blut"),
    "a short word is not found within another": ("ddu1", ""),
    "a run takes the longest pieces": ("电话号", "电话 号"),
    "a run begins anywhere": ("我电号", "电 号"),
    "digits": ("122", "1 ##2 ##2"),
    "data": ("b" * (MAX_WORD_CHARACTERS + 1), ""),
}


@pytest.mark.parametrize(("word", "expected"), PIECES.values(), ids=PIECES)
def test_a_word_is_made_of_its_longest_pieces(word: str, expected: str) -> None:
    names = list(VOCABULARY)
    assert [names[number] for number in split_word(word, VOCABULARY)] == expected.split()


@given(text=st.text(max_size=80))
def test_words_are_folded_once_and_for_all(text: str) -> None:
    found = words(text)
    assert words(" ".join(found)) == found
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize("name", EmbedderSuite.names())
async def test_the_contract_of_embedders(name: str) -> None:
    async def opened() -> Embedder:
        return _SHIPPED

    async def failing() -> Embedder:
        return StaticEmbedder(FILE.with_name("absent.bin"), model=MULTILINGUAL)

    await EmbedderSuite.of(opened, failing).cases()[name]()


def test_the_table_is_what_the_readme_says_and_small_enough_to_upload() -> None:
    packed = FILE.read_bytes()
    table = StaticTable.unpack(packed)
    assert (table.dimensions, len(table.vocabulary), table.multilingual) == (256, 74_502, True)
    assert len(packed) <= LARGEST_BYTES
    assert hashlib.sha256(packed).hexdigest() in FILE.with_name("README.md").read_text()


def test_a_table_of_ones_own_is_found_by_its_name() -> None:
    assert (table_file(MULTILINGUAL), table_file("mine-128")) == (FILE.name, "mine-128.bin")


@given(text=st.text(max_size=60))
def test_any_text_has_a_vector_of_length_one_or_zero(text: str) -> None:
    [vector] = asyncio.run(_SHIPPED.embed([text]))
    assert math.hypot(*vector) == pytest.approx(1) or not any(vector)


SAME = {
    "en": ("The parcel has not arrived yet", "She lives in an old house by the sea", "He is allergic to nuts"),
    "de": (
        "Das Paket ist noch nicht angekommen",
        "Sie wohnt in einem alten Haus am Meer",
        "Er ist gegen Nüsse allergisch",
    ),
    "fr": (
        "Le colis n'est pas encore arrivé",
        "Elle habite une vieille maison au bord de la mer",
        "Il est allergique aux noix",
    ),
    "es": ("El paquete aún no ha llegado", "Vive en una casa vieja junto al mar", "Es alérgico a las nueces"),
    "pt": ("A encomenda ainda não chegou", "Ela mora numa casa velha à beira do mar", "Ele é alérgico a nozes"),
    "it": ("Il pacco non è ancora arrivato", "Abita in una vecchia casa sul mare", "È allergico alle noci"),
    "nl": ("Het pakket is nog niet aangekomen", "Ze woont in een oud huis aan zee", "Hij is allergisch voor noten"),
    "ru": ("Посылка ещё не пришла", "Она живёт в старом доме у моря", "У него аллергия на орехи"),
    "zh": ("包裹还没有到", "她住在海边的一座老房子里", "他对坚果过敏"),
    "ja": ("荷物はまだ届いていません", "彼女は海辺の古い家に住んでいます", "彼はナッツにアレルギーがあります"),
    "ko": ("소포가 아직 도착하지 않았어요", "그녀는 바닷가의 오래된 집에 살아요", "그는 견과류 알레르기가 있어요"),
    "ar": ("الطرد لم يصل بعد", "تعيش في بيت قديم على البحر", "لديه حساسية من المكسرات"),
}


async def test_sentences_are_nearest_to_their_translations() -> None:
    """Of the three English sentences, for at least thirty of thirty-three in other languages."""
    english = await _SHIPPED.embed(SAME["en"])
    nearest = 0
    for language in [language for language in SAME if language != "en"]:
        for number, vector in enumerate(await _SHIPPED.embed(SAME[language])):
            similar = [sum(a * b for a, b in zip(vector, other, strict=True)) for other in english]
            nearest += similar.index(max(similar)) == number
    assert nearest >= 30


@pytest.mark.parametrize(
    "text", ["مرحبا", "שלום", "नमस्ते", "สวัสดี", "안녕하세요", "Γειά σου", "გამარჯობა 1", "你好", "こんにちは"]
)
async def test_texts_in_other_scripts_have_vectors(text: str) -> None:
    [vector] = await _SHIPPED.embed([text])
    assert any(vector)


async def test_word_order_is_lost_and_case_and_accents_do_not_matter() -> None:
    vectors = await _SHIPPED.embed(["Señora Müller", "senora muller", "muller senora"])
    assert all(left == pytest.approx(right) for left, right in pairwise(vectors))
