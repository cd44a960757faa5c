"""German stems. Source: https://snowballstem.org/algorithms/german/stemmer.html"""

from __future__ import annotations

from retain.memory.recall.languages.stems.regions import listed, longest, marked, r1_r2, without

_FIRST = listed("em ern er e en es s")
_SECOND = listed("en er est et st")
_BEFORE_ET = "dfghklmnrstzU"
_DERIVED = listed("end ung ig ik isch lich heit keit")
_BEFORE_S = "bdfghklmnrt"
_BEFORE_ST = "bdfghklmnt"


def stem(word: str) -> str:
    """Return the stem of a folded word."""
    word = marked(word, "uy")
    r1, r2 = r1_r2(word)
    return _derived(_second(_first(word, max(r1, 3)), max(r1, 3)), r1, r2).lower()


def _derived(word: str, r1: int, r2: int) -> str:
    ending = longest(word, _DERIVED)
    at = len(word) - len(ending)
    if not ending or at < r2:
        return word
    kept = word[:at]
    match ending:
        case "end" | "ung":
            return kept[:-2] if kept.endswith("ig") and not kept.endswith("eig") and at - 2 >= r2 else kept
        case "lich" | "heit":
            return without(kept, ("er", "en"), max(r1, 3))
        case "keit":
            return without(kept, ("lich", "ig"), r2)
        case _:
            return word if kept.endswith("e") else kept


def _first(word: str, r1: int) -> str:
    ending = longest(word, _FIRST)
    at = len(word) - len(ending)
    if not ending or at < r1:
        return word
    kept = word[:at]
    if ending == "s":
        return kept if kept[-1] in _BEFORE_S else word
    return kept[:-1] if ending in {"e", "en", "es"} and kept.endswith("niss") else kept


def _second(word: str, r1: int) -> str:
    ending = longest(word, _SECOND)
    at = len(word) - len(ending)
    if not ending or at < r1:
        return word
    if ending == "et":
        return word[:at] if word[at - 1] in _BEFORE_ET else word
    return word if ending == "st" and (at < 4 or word[at - 1] not in _BEFORE_ST) else word[:at]
