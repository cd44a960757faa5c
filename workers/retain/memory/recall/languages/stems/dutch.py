"""Dutch stems. Source: https://snowballstem.org/algorithms/dutch_porter/stemmer.html"""

from __future__ import annotations

from retain.memory.recall.languages.stems.regions import VOWELS, listed, longest, marked, r1_r2

_FIRST = listed("heden en ene s se")
_DERIVED = listed("end ing ig lijk baar bar")


def stem(word: str) -> str:
    """Return the stem of a folded word."""
    word = marked(word, "i")
    r1, r2 = r1_r2(word)
    r1 = max(r1, 3)
    word, removed = _without_e(_first(word, r1), r1)
    if word.endswith("heid") and len(word) - 4 >= r2 and not word.endswith("cheid"):
        word = _without_en(word[:-4], "en", r1)
    ending = longest(word, _DERIVED)
    at = len(word) - len(ending)
    if ending and at >= r2:
        kept = word[:at]
        match ending:
            case "end" | "ing":
                plain = kept.endswith("ig") and not kept.endswith("eig") and at - 2 >= r2
                word = kept[:-2] if plain else _undoubled(kept)
            case "ig":
                word = word if kept.endswith("e") else kept
            case "lijk":
                word = _without_e(kept, r1)[0]
            case "bar":
                word = kept if removed else word
            case _:
                word = kept
    single = len(word) > 3 and word[-2] == word[-3] and word[-2] in "aeou" and not {word[-1], word[-4]} & VOWELS
    return (word[:-2] + word[-1] if single else word).lower()


def _first(word: str, r1: int) -> str:
    ending = longest(word, _FIRST)
    at = len(word) - len(ending)
    if not ending or at < r1:
        return word
    if ending == "heden":
        return word[:at] + "heid"
    if ending in {"en", "ene"}:
        return _without_en(word, ending, r1)
    return word if word[at - 1] in VOWELS or word[at - 1] == "j" else word[:at]


def _without_en(word: str, ending: str, r1: int) -> str:
    at = len(word) - len(ending)
    kept = word[:at]
    if not word.endswith(ending) or at < r1 or kept[-1] in VOWELS or kept.endswith("gem"):
        return word
    return _undoubled(kept)


def _without_e(word: str, r1: int) -> tuple[str, bool]:
    if word.endswith("e") and len(word) - 1 >= r1 and word[-2] not in VOWELS:
        return _undoubled(word[:-1]), True
    return word, False


def _undoubled(word: str) -> str:
    return word[:-1] if word.endswith(("kk", "dd", "tt")) else word
