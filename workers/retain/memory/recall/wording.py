"""Compare two texts by what they state, whatever disguises, frames or trivial rewording they differ in.

Differences that count for nothing: case and spacing, characters that are not seen, letters that look like others, a frame
around the statement ("I recall: …", "… Indeed."), articles, contractions and small numbers in words. Everything else
counts: another word, number, sign, order or negation is another statement. English only, except for the disguises.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

_WITH_FORM = frozenset(("<super>", "<sub>", "<circle>", "<fraction>"))
"""Forms that change what is said: 10³ is not 103, ①② not 12, and 1½ not 11/2.

Source: https://www.unicode.org/reports/tr44/#Character_Decomposition_Mappings
"""
_LOOK_ALIKES = (
    "A\u0391\u0410 a\u0251\u03b1\u0430 B\u0392\u0412\ua7b4 b\u0184\u042c C\u0421 c\u0441\u1d04 d\u0501 "
    "E\u0395\u0415 e\u0435\u04bd\uab32 F\u03dc\ua798 f\u1e9d\ua799\uab35 G\u050c g\u018d\u0261\u1d83 "
    "H\u0397\u041d h\u04bb I\u0399\u0406\u04c0 i\u0131\u0269\u026a\u03b9\u0456\ua647 J\u037f\u0408\ua7b2 "
    "j\u03f3\u0458 K\u039a\u041a l\u0196\u01c0\u04cf M\u039c\u03fa\u041c N\u039d O\u039f\u041e "
    "o\u03bf\u03c3\u043e\u1d0f\u1d11\uab3d P\u03a1\u0420 p\u03c1\u0440 q\u051b R\u01a6 "
    "r\u0433\u1d26\uab47\uab48 S\u0405 s\u01bd\u0455\ua731 T\u03a4\u0422 u\u028b\u03c5\u1d1c\ua79f\uab4e\uab52 "
    "V\u0474 v\u03bd\u0475\u1d20 W\u051c w\u026f\u0461\u051d\u1d21 X\u03a7\u0425\ua7b3 x\u0445 "
    "Y\u03a5\u0423\u04ae y\u0263\u028f\u03b3\u0443\u04af\u1d8c\u1eff\uab5a Z\u0396 z\u1d22"
)
"""Each Latin letter, followed by the Latin, Greek and Cyrillic letters that look like it.

Source: https://www.unicode.org/Public/security/latest/confusables.txt
"""
_SEEN_AS = str.maketrans({other: group[0] for group in _LOOK_ALIKES.split() for other in group[1:]})
_LETTERS = re.compile(r"[^\W\d_]+")
_ALPHABETS = re.compile("[\u0370-\u03ff\u0400-\u052f\u1f00-\u1fff]")
"""Greek and Cyrillic letters."""

_UNSEEN = re.compile("[\u034f\u115f\u1160\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters that are not seen, besides those of Unicode's category Cf."""

_MARGIN = " \t\r\n-*\u2022>\"'`\u201c\u201d\u2018\u2019.!,;:"
_EDGE = r"[\s.,:;!\-\u2013\u2014(\[\])]"
_MARK = r"\s*[.,:;!\-\u2013\u2014(\[\])]"
_OWN = r"(?:as )?i (?:recall|remember|know|noted?|have (?:noted|stored|remembered))"
_STATED = "|".join(
    (
        _OWN,
        r"as (?:noted|stated|mentioned|stored|known|recalled|remembered|(?:you|we) (?:all )?know)(?: before| earlier)?",
        r"(?:according to|from|in) (?:my |our |the |your )?(?:long-term )?(?:memory|memories|notes|records)",
        r"(?:my |the )?(?:memory|memories|notes|records) (?:says?|shows?|tells? me)",
        r"it is (?:known|true|certain|noted)",
        r"(?:please )?(?:remember|recall|note)",
    )
)
_ASIDE = "|".join(
    (
        r"(?:the |most |very )*(?:important|certain|recent|latest)",
        r"as always|of course|for sure|in fact|in short|in summary|to recap|to summari[sz]e|for the record|fyi",
        r"yes|ok|okay|well|so|indeed|certainly|definitely|confirmed|clearly|obviously|actually|really|reminder",
        r"(?:known |stored )?(?:fact|memory)|(?:previously )?(?:stored|recalled|remembered|noted|known)",
        r"(?:this|that|it|which) is (?:true|certain|correct|confirmed|important|known|noted)",
    )
)
_STAMP = r"\((?:said|since)\b(?: \d{4}-\d\d-\d\d \d\d:\d\d UTC)?(?: by [^\n]{1,512}?)?\)"
"""What an agent's context has in front of a remembered text: when it was said, and by whom."""
_BEFORE = re.compile(
    rf"(?:{_STAMP}|(?:{_STATED}){_EDGE}+that\b|{_OWN}\s+(?=\S+\s\S+\s\S)|(?:{_STATED}|{_ASIDE}){_MARK}){_EDGE}*",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"(?:\s+indeed|{_MARK}{_EDGE}*(?:{_STATED}|{_ASIDE})){_EDGE}*$", re.IGNORECASE)
_LONGEST_FRAME = 80
"""Characters at the end of a text in which a frame is looked for."""
_FRAMES = 8
"""The most frames around one statement."""

_JOINT = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])|(?<=\s)[-\u2013\u2014]+(?=\s)")
"""A hyphen between words and a dash between clauses: not a minus, nor the sign of a range."""
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*|[^\s]")
_SILENT = frozenset(".,;:!'\"()[]`\u2026\u201c\u201d\u201e\u2018\u00ab\u00bb")
_FILLERS = frozenset(("a", "an", "the", "that", "really", "indeed", "actually", "certainly", "definitely"))
_WHOLE = {"won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "shall not", "&": "and"} | {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_SHORT = (("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"))
_IS = frozenset(("it's", "he's", "she's", "that's", "there's", "what's", "who's"))
_UNCERTAIN = "|".join([*sorted(_FILLERS), *_WHOLE.values(), *filter(str.isalpha, _WHOLE)])
_OTHERWISE_SPELT = re.compile(rf"\b[^\W\d_]+['\u2019]t\b|\b[^\W\d_]+(?=\s+not\b)|\b(?:{_UNCERTAIN})\b", re.IGNORECASE)
"""Words that the same statement may have in another spelling, or not at all."""


def undisguised(text: str) -> str:
    """Return the text as it is seen: without invisible characters, and with Latin letters for those that look like them.

    A letter of another alphabet is replaced in a word that also has Latin letters, and everywhere in a text all of whose
    Greek and Cyrillic letters look Latin. Words of these alphabets stay as they are.
    """
    return text if text.isascii() else _latin(unicodedata.normalize("NFKC", text))


def normalised(text: str) -> str:
    """Return the text normalised for comparison: undisguised, without case, outer punctuation and differences of spacing."""
    return _plain(_trimmed(_plain(text)).casefold())  # small letters look alike that capitals do not


def statement(text: str) -> str:
    """Return the text, undisguised and with single spaces, without the frames around its statement."""
    text = _trimmed(_plain(text))
    for _ in range(_FRAMES):
        before = _BEFORE.match(text)
        kept = text if before is None else text[before.end() :]
        after = _AFTER.search(kept, max(len(kept) - _LONGEST_FRAME, 0))
        kept = _trimmed(kept if after is None else kept[: after.start()])
        if not kept or kept == text:
            break
        text = kept
    return text


def wording(text: str) -> tuple[str, ...]:
    """Return the words and signs of the text's statement that count, spelled out. Texts that say the same have equal ones.

    A capital A inside a sentence is a name, as in "Vitamin A", and no article.
    """
    stated = statement(text)
    found = _WORD.findall(_JOINT.sub(" ", stated.replace("\u2019", "'")))
    names = not stated.isupper()
    kept = [
        word.casefold()
        for number, word in enumerate(found)
        if word not in _SILENT and not (word.casefold() in _FILLERS and not (names and number and word == "A"))
    ]
    return tuple(_plain(" ".join(_spelled(word) for word in kept)).split())


def certain_words(text: str) -> str:
    """Return the text's statement without the words that a text of equal wording may lack: all others are in each of those,
    unless it is disguised.
    """
    return _OTHERWISE_SPELT.sub(" ", statement(text))


def _plain(text: str) -> str:
    """Return the text undisguised for comparison: as `undisguised`, but 10³ is not 103."""
    return text if text.isascii() else _latin(compatible(text, numbers_alone=True))


def _latin(compatible_text: str) -> str:
    seen = _UNSEEN.sub("", "".join(c for c in compatible_text if unicodedata.category(c) != "Cf"))
    latin = seen.translate(_SEEN_AS)
    return latin if _ALPHABETS.search(latin) is None else _LETTERS.sub(_in_latin, seen)


def _trimmed(text: str) -> str:
    return " ".join(text.split()).strip(_MARGIN)


def _spelled(word: str) -> str:
    if word in _WHOLE:
        return _WHOLE[word]
    if word in _IS:
        return f"{word[:-2]} is"
    return next((word[: -len(end)] + full for end, full in _SHORT if word.endswith(end)), word)


def _in_latin(letters: re.Match[str]) -> str:
    text = letters[0]
    return text.translate(_SEEN_AS) if any(c.isascii() for c in text) else text


def compatible(text: str, *, numbers_alone: bool = False) -> str:
    """Return the text in NFKC, with what is above, below, in a circle or a fraction left as it is.

    numbers_alone: letters lose their form.
    """

    def is_kept(c: str) -> bool:
        return unicodedata.decomposition(c).partition(" ")[0] in _WITH_FORM and (c.isnumeric() or not numbers_alone)

    if unicodedata.is_normalized("NFKC", text):
        return text
    parts = ((kept, "".join(run)) for kept, run in groupby(text, is_kept))
    return "".join(run if kept else unicodedata.normalize("NFKC", run) for kept, run in parts)
