"""Languages without stems: their texts are not taken for those of a language that has them, and are found as they were said.

Taken for French here and for Spanish there, a text and a question about it would be looked for by different terms.
"""

import pytest

from retain.memory.recall.languages.detection import LATIN, language_of
from retain.memory.recall.languages.others import LETTERS_OF_OTHERS, OTHERS
from retain.memory.recall.languages.terms import detected
from retain.memory.recall.words import STOP as ENGLISH_STOP
from retain.memory.recall.words import fold, words
from retain.memory.records.record import NewRecord
from retain.memory.semantic import RecallQuery
from tests.memory.semantic.substrate import PERSON, Substrate

TEXTS = {
    "Catalan": (
        "La Núria viu amb la seva germana a Girona i també té un gos que es diu Bruc.",
        "Amb qui viu la Núria, i on?",
    ),
    "Croatian": ("Ivana radi u Zagrebu i svaki dan pije kavu bez šećera.", "Gdje radi Ivana i što pije?"),
    "Czech": ("Paní Nováková je alergická na ořechy a jí jen zeleninu.", "Na co je paní Nováková alergická?"),
    "Danish": (
        "Kunden bor på Fyn og vil ikke have sin ordre før på fredag.",
        "Hvornår vil kunden på Fyn have sin ordre?",
    ),
    "Finnish": (
        "Asiakas haluaa laskun sähköpostitse eikä kirjeenä.",
        "Miten asiakas haluaa laskun, kirjeenä vai sähköpostitse?",
    ),
    "Hungarian": (
        "Az ügyfél szerdán délután jön, és fizetni is akkor fog.",
        "Mikor jön az ügyfél, és hogyan fog fizetni?",
    ),
    "Indonesian": (
        "Ibu Dewi tidak makan daging dan tinggal di Bandung dengan anaknya.",
        "Di mana Ibu Dewi tinggal dan apa yang dia makan?",
    ),
    "Norwegian": (
        "Kunden liker ikke å få brev, men han leser alle meldinger på mobilen.",
        "Hva liker kunden ikke å få?",
    ),
    "Polish": (
        "Pani Kowalska mieszka w Łodzi i nie je mięsa od trzech lat.",
        "Gdzie mieszka pani Kowalska i od kiedy nie je mięsa?",
    ),
    "Romanian": (
        "Clienta locuiește la Cluj și are o alergie la nuci, de aceea nu mănâncă deserturi din comerț.",
        "La ce are alergie clienta din Cluj și ce nu mănâncă?",
    ),
    "Slovak": ("Zákazník chce faktúru na firmu a tovar až po víkende.", "Kedy chce zákazník tovar a na koho faktúru?"),
    "Swedish": (
        "Kunden är allergisk mot nötter och äter aldrig efterrätt på restaurang.",
        "Vad är kunden allergisk mot?",
    ),
    "Turkish": (
        "Müşteri İzmir'de oturuyor ve ürünü salı günü geri göndermek istiyor.",
        "Müşteri ürünü ne zaman geri göndermek istiyor?",
    ),
    "Vietnamese": (
        "Chị Lan dị ứng với đậu phộng và chỉ uống cà phê không đường.",
        "Chị Lan dị ứng với món gì, và uống gì?",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_of_another_language_is_taken_for_one_with_stems(name: str) -> None:
    for text in TEXTS[name]:
        assert detected(text) in (None, "en"), text


async def test_what_was_said_in_a_language_without_stems_is_found_first(substrate: Substrate) -> None:
    memory = substrate.memory()
    for text, _ in TEXTS.values():
        await memory.store(NewRecord(text), PERSON)
    for text, question in TEXTS.values():
        assert (await memory.search(RecallQuery(question, 1)))[0].record.content == text


def test_a_name_from_another_language_does_not_hide_the_text_s_own() -> None:
    assert detected("Herr Yıldız und Frau Wiśniewska warten seit gestern auf die Rückzahlung") == "de"
    assert detected("La señora Wiśniewska no come carne desde hace dos años") == "es"


def test_a_text_in_another_script_with_a_phrase_of_one_with_stems_is_not_of_that_language() -> None:
    assert detected("他最喜欢的歌是 La Vie en rose et Non, je ne regrette rien，每天都听") is None


def test_the_words_are_folded_and_none_of_them_is_english() -> None:
    for name, listed in OTHERS.items():
        assert all(fold(word) == word and words(word) == [word] for word in listed), name
    assert {*LETTERS_OF_OTHERS} <= {*OTHERS}
    assert {*OTHERS}.isdisjoint(LATIN)
    assert language_of("and the with", ["and", "the", "with"], ENGLISH_STOP) == "en"
