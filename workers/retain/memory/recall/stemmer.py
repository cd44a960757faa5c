"""Porter's stemmer, with the results of FTS5's `porter` tokenizer.

Own code, because the stemming libraries import every language they know
(docs/decisions/0002-dependencies.md). A test compares it with FTS5 word by word.
Source: https://tartarus.org/martin/PorterStemmer/def.txt
"""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
_STEP2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP3 = (("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_STEP4 = tuple("ement ance ence able ible ment ant ent ism ate iti ous ive ize al er ic ou".split())


def _shape(stem: str) -> str:
    """``c``/``v`` per letter; ``y`` is a vowel after a consonant."""
    out: list[str] = []
    for i, letter in enumerate(stem):
        vowel = letter in _VOWELS or (letter == "y" and i > 0 and out[-1] == "c")
        out.append("v" if vowel else "c")
    return "".join(out)


def _measure(stem: str) -> int:
    return _shape(stem).count("vc")


def _cvc(stem: str) -> bool:
    return _shape(stem)[-3:] == "cvc" and stem[-1] not in "wxy"


def porter_stem(w: str) -> str:  # noqa: C901 -- the algorithm, as it is published
    """Return the stem of a folded word. Words outside ASCII, shorter than 3 or longer than 64 letters stay unchanged."""
    if len(w) < 3 or len(w) > 64 or not w.isascii():
        return w
    # An ending must be shorter than its word, as in FTS5: the words `ies` and `eed` are stemmed by their shorter endings.
    if (len(w) > 4 and w.endswith("sses")) or (len(w) > 3 and w.endswith("ies")):
        w = w[:-2]
    elif w.endswith("s") and not w.endswith("ss"):
        w = w[:-1]
    if len(w) > 3 and w.endswith("eed"):
        if _measure(w[:-3]) > 0:
            w = w[:-1]
    else:
        base = w[:-2] if w.endswith("ed") else w[:-3] if w.endswith("ing") else ""
        if base and "v" in _shape(base):
            w = base
            if w.endswith(("at", "bl", "iz")):
                w += "e"
            elif len(w) > 1 and w[-1] == w[-2] and w[-1] not in "aeioulsz":
                w = w[:-1]
            elif _measure(w) == 1 and _cvc(w):
                w += "e"
    if w.endswith("y") and "v" in _shape(w[:-1]):
        w = w[:-1] + "i"
    for table in (_STEP2, _STEP3):
        for ending, replacement in table:
            if w.endswith(ending):
                if _measure(w[: -len(ending)]) > 0:
                    w = w[: -len(ending)] + replacement
                break
    for ending in _STEP4:
        if w.endswith(ending):
            if _measure(w[: -len(ending)]) > 1:
                w = w[: -len(ending)]
            break
    else:
        if w.endswith(("sion", "tion")) and _measure(w[:-3]) > 1:
            w = w[:-3]
    if w.endswith("e"):
        m = _measure(w[:-1])
        if m > 1 or (m == 1 and not _cvc(w[:-1])):
            w = w[:-1]
    if w.endswith("ll") and _measure(w[:-1]) > 1:
        w = w[:-1]
    return w
