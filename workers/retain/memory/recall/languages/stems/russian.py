"""Russian stems, of words in which a short i is an i and a yo is a ye. Source: https://snowballstem.org/algorithms/russian/stemmer.html"""

from __future__ import annotations

from retain.memory.recall.languages.stems.regions import listed, longest, r1_r2

_VOWELS = frozenset("аеиоуыэюя")
_AFTER_A = ("а", "я")
_GERUND_A, _GERUND = listed("в вши вшись"), listed("ив ивши ившись ыв ывши ывшись")
_ADJECTIVE = listed(
    "ее ие ые ое ими ыми еи ии ыи ои ем им ым ом его ого ему ому их ых ую юю ая яя ою ею"
)  # fmt: skip
_PARTICIPLE_A, _PARTICIPLE = listed("ем нн вш ющ щ"), listed("ивш ывш ующ")
_VERB_A = listed("ла на ете ите ли и л ем н ло но ет ют ны ть ешь нно")
_VERB = listed(
    "ила ыла ена еите уите ите или ыли еи уи ил ыл им ым ен ило ыло ено ят ует уют ит ыт ены ить ыть ишь ую ю"
)
_NOUN = listed("а ев ов ие ье е иями ями ами еи ии и иеи ои иям ям ием ем ам ом о у ах иях ях ы ь ию ью ю ия ья я")
_DERIVED = listed("ост ость")


def stem(word: str) -> str:
    """Return the stem of a folded word."""
    rv = next((place + 1 for place, letter in enumerate(word) if letter in _VOWELS), len(word))
    r2 = r1_r2(word, _VOWELS)[1]
    word = _inflected(word, rv)
    if word.endswith("и") and len(word) > rv:
        word = word[:-1]
    derived = longest(word, _DERIVED, rv)
    if derived and len(word) - len(derived) >= r2:
        word = word[: -len(derived)]
    superlative = longest(word, ("еише", "еиш"), rv)
    word = word[: len(word) - len(superlative)]
    if word.endswith("нн") and len(word) - 2 >= rv:
        return word[:-1]
    return word[:-1] if word.endswith("ь") and len(word) > rv else word


def _inflected(word: str, rv: int) -> str:
    """Return the word without its gerund's, adjective's, verb's or noun's ending."""
    gerund = _grouped(word, rv, _GERUND, _GERUND_A)
    if gerund:
        return word[: -len(gerund)]
    reflexive = longest(word, ("ся", "сь"), rv)
    word = word[: len(word) - len(reflexive)]
    adjective = longest(word, _ADJECTIVE, rv)
    if adjective:
        word = word[: -len(adjective)]
        participle = _grouped(word, rv, _PARTICIPLE, _PARTICIPLE_A)
        return word[: len(word) - len(participle)]
    verb = _grouped(word, rv, _VERB, _VERB_A) or longest(word, _NOUN, rv)
    return word[: len(word) - len(verb)]


def _grouped(word: str, rv: int, free: tuple[str, ...], bound: tuple[str, ...]) -> str:
    """Return the longest ending of two groups, the second of which needs a or ya before it, or ""."""
    plain, after = longest(word, free, rv), longest(word, bound, rv)
    if len(plain) >= len(after):
        return plain
    before = len(word) - len(after)
    return after if before > rv and word[:before].endswith(_AFTER_A) else plain
