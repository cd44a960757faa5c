import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.models.embedders.static import StaticEmbedder
from retain.models.embedders.wordpiece import MAX_WORD_CHARACTERS, split_word, words

# The expected pieces are those of the reference tokenizer of bert-base-uncased, less the pieces outside ASCII.
PIECES = {
    "an address": ("Refund for bob@example.com", "ref ##und for bob @ example . com"),
    "accents are dropped": ("Crème Brûlée", "cr ##eme br ##ule ##e"),
    "combining accents are dropped": ("e\u0301galite\u0301", "e ##gal ##ite"),
    "upper case with a dot": ("\u0130stanbul", "istanbul"),
    "an apostrophe splits": ("don't", "don ' t"),
    "a curly apostrophe splits and is dropped": ("caf\u00e9\u2019s", "cafe s"),
    "underscore and hyphen split": ("e-mail: A_B", "e - mail : a _ b"),
    "white space of all kinds splits": ("tab\tnew\nline\rcr\u00a0non\u3000wide", "tab new line cr non wide"),
    "zero width space joins": ("zero\u200bwidth", "zero ##wi ##dt ##h"),
    "soft hyphen joins": ("soft\u00adhyphen", "soft ##hy ##ph ##en"),
    "control characters join": ("\x00nul\x07bell", "nu ##lb ##ell"),
    "vertical tab and separators join": ("line\x0bvt\x0cff\x1csep", "line ##v ##tf ##fs ##ep"),
    "curly quotes and a dash": ("\u201cquoted\u201d \u2014 dash", "quoted dash"),
    "symbols stand alone": ("$5+3=8", "$ 5 + 3 = 8"),
    "numbers": ("order #4471 (13.50 USD)", "order # 44 ##7 ##1 ( 13 . 50 usd )"),
    "ideographs split and are dropped": ("\u6771\u4eac2024", "202 ##4"),
    "compatibility characters": ("\u212a\u037e", "k ;"),
    "longest pieces first": ("unaffordableness", "una ##ff ##ord ##able ##ness"),
    "the longest word with pieces": ("x" * 100, "xx " + "##xx " * 49),
}

# Here the reference gives one unknown piece for the whole word, or pieces that the table does not have.
SKIPPED = {
    "a currency sign before digits": ("\u20ac100", "##100"),
    "an emoji after a word": ("great\U0001f44d", "great"),
    "a foreign letter within a word": ("stra\u00dfe", "st ##ra ##e"),
    "another script": ("\u041f\u0440\u0438\u0432\u0435\u0442", ""),
    "hangul": ("\ud55c\uad6d\uc5b4", ""),
    "full width letters": ("\uff21\uff22\uff11", ""),
    "a lone surrogate": ("a\ud800b", "ab"),
    "nothing": ("", ""),
    "a word that is too long": ("x" * 101, ""),
}


@pytest.mark.parametrize(("text", "expected"), [*PIECES.values(), *SKIPPED.values()], ids=[*PIECES, *SKIPPED])
def test_a_text_is_split_into_the_pieces_of_the_reference_tokenizer(
    static: StaticEmbedder, text: str, expected: str
) -> None:
    vocabulary = static.table().vocabulary
    names = list(vocabulary)
    found = [names[piece] for word in words(text) for piece in split_word(word, vocabulary)]
    assert found == expected.split()


@given(st.text(alphabet=st.characters(codec=None)))
def test_words_hold_no_white_space_and_are_never_empty(text: str) -> None:
    for word in words(text):
        assert word
        assert not any(character.isspace() for character in word)


@given(st.text(), st.text())
def test_a_space_separates_words(left: str, right: str) -> None:
    assert words(f"{left} {right}") == words(left) + words(right)


@given(st.text(alphabet="abcdef", min_size=1, max_size=MAX_WORD_CHARACTERS))
def test_pieces_put_together_are_the_word(word: str) -> None:
    names = ["a", "b", "c", "d", "e", "f", "abc", "##a", "##b", "##c", "##d", "##e", "##f", "##def", "##ab"]
    pieces = split_word(word, {name: number for number, name in enumerate(names)})
    assert "".join(names[piece].removeprefix("##") for piece in pieces) == word
    assert [names[piece].startswith("##") for piece in pieces] == [False] + [True] * (len(pieces) - 1)
