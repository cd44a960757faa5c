"""Spanish and Portuguese stems.

Source: https://snowballstem.org/algorithms/spanish/stemmer.html, https://snowballstem.org/algorithms/portuguese/stemmer.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.memory.recall.languages.stems.regions import listed, longest, r1_r2, romance_rv, without

_VOWELS = frozenset("aeiou")


@dataclass(frozen=True, slots=True)
class _Standard:
    """Standard endings of a language.

    plain: taken off. after_ic: taken off, with "ic" before it. replaced: what follows the rest. mente: what may be before
    "mente".
    """

    plain: tuple[str, ...]
    after_ic: tuple[str, ...]
    replaced: Mapping[str, str]
    ity: tuple[str, ...]
    mente: tuple[str, ...]

    def endings(self) -> tuple[str, ...]:
        every = (
            *self.plain,
            *self.after_ic,
            *self.replaced,
            *self.ity,
            "amente",
            "mente",
            "iva",
            "ivo",
            "ivas",
            "ivos",
        )
        return listed(" ".join(every))


_SPANISH = _Standard(
    listed(
        "anza anzas ico ica icos icas ismo ismos able ables ible ibles ista istas oso osa osos osas amiento amientos"
        " imiento imientos"
    ),
    listed("adora ador acion adoras adores aciones ante antes ancia ancias acions"),
    {"logia": "log", "logias": "log", "ucion": "u", "uciones": "u", "encia": "ente", "encias": "ente"},
    ("idades", "idad"),
    ("ante", "able", "ible"),
)
_PORTUGUESE = _Standard(
    listed(
        "eza ezas ico ica icos icas ismo ismos avel ivel ista istas oso osa osos osas amento amentos imento imentos adora"
        " ador acao adoras adores acoes ante antes ancia"
    ),
    (),
    {"logia": "log", "logias": "log", "ucao": "u", "ucoes": "u", "encia": "ente", "encias": "ente"},
    ("idades", "idade"),
    ("ante", "avel", "ivel"),
)
_SPANISH_ENDINGS, _PORTUGUESE_ENDINGS = _SPANISH.endings(), _PORTUGUESE.endings()
_PRONOUNS = listed("me se sela selo selas selos la le lo las les los nos")
_HOSTS = listed("ando iendo ar er ir")
_Y_VERB = listed("ya ye yan yen yeron yendo yo yas yes yais yamos")
_SPANISH_VERB = listed(
    "en es eis emos arian arias aran aras ariais aria areis ariamos aremos ara are erian erias eran eras eriais eria ereis"
    " eriamos eremos era ere irian irias iran iras iriais iria ireis iriamos iremos ira ire aba ada ida iera ad ed id"
    " ase iese aste iste an aban ian ieran asen iesen aron ieron ado ido ando iendo ar er ir as abas adas idas"
    " ieras ases ieses ais abais iais arais ierais aseis ieseis asteis isteis ados idos amos abamos iamos imos aramos"
    " ieramos iesemos asemos"
)
_PORTUGUESE_VERB = listed(
    "ada ida ia aria eria iria ara era ira ava asse esse isse aste este iste ei arei erei irei am iam ariam eriam iriam"
    " aram eram iram avam em arem erem irem assem essem issem ado ido ando endo indo arao erao irao ar er ir as adas idas"
    " ias arias erias irias aras eras iras avas es ardes erdes irdes ares eres ires asses esses isses astes estes istes is"
    " ais eis ieis arieis erieis irieis areis ereis ireis asseis esseis isseis aveis ados idos amos iamos ariamos eriamos"
    " iriamos aramos eramos iramos avamos emos aremos eremos iremos assemos essemos issemos imos armos ermos irmos eu iu"
    " ou"
)


def spanish(word: str) -> str:
    """Return the stem of a folded Spanish word."""
    r1, r2 = r1_r2(word, _VOWELS)
    rv = romance_rv(word, _VOWELS)
    word = _without_pronoun(word, rv)
    found = _standard(word, _SPANISH, _SPANISH_ENDINGS, r1, r2)
    if found == word:
        found = _spanish_verb(word, rv)
    ending = longest(found, ("os", "a", "o", "i", "e"), rv)
    found = found[: len(found) - len(ending)]
    return found[:-1] if ending == "e" and found.endswith("gu") and len(found) - 1 >= rv else found


def portuguese(word: str) -> str:
    """Return the stem of a folded Portuguese word."""
    r1, r2 = r1_r2(word, _VOWELS)
    rv = romance_rv(word, _VOWELS)
    found = _standard(word, _PORTUGUESE, _PORTUGUESE_ENDINGS, r1, r2)
    if found == word and word.endswith(("eira", "eiras")) and word.rindex("ira") >= rv:
        found = word[: word.rindex("ira") + 2]
    if found == word:
        ending = longest(word, _PORTUGUESE_VERB, rv)
        found = word[: len(word) - len(ending)]
    if found != word:
        found = found[:-1] if found.endswith("ci") and len(found) > rv else found
    else:
        found = found[: len(found) - len(longest(found, ("os", "a", "i", "o"), rv))]
    if not found.endswith("e") or len(found) <= rv:
        return found
    found = found[:-1]
    return found[:-1] if found.endswith(("gu", "ci")) and len(found) > rv else found


def _without_pronoun(word: str, rv: int) -> str:
    pronoun = longest(word, _PRONOUNS, rv)
    if not pronoun:
        return word
    kept = word[: -len(pronoun)]
    bound = longest(kept, _HOSTS, rv) or (kept.endswith("uyendo") and len(kept) - 5 >= rv)
    return kept if bound else word


def _standard(word: str, language: _Standard, endings: tuple[str, ...], r1: int, r2: int) -> str:
    ending = longest(word, endings)
    at = len(word) - len(ending)
    kept = word[:at]
    if not ending or at < (r1 if ending == "amente" else r2):
        return word
    if ending in language.replaced:
        return kept + language.replaced[ending]
    if ending in language.after_ic:
        return without(kept, ("ic",), r2)
    if ending == "amente":
        short = without(kept, ("iv",), r2)
        return without(kept, ("os", "ic", "ad"), r2) if short == kept else without(short, ("at",), r2)
    if ending == "mente":
        return without(kept, language.mente, r2)
    if ending in language.ity:
        return without(kept, ("abil", "ic", "iv"), r2)
    return without(kept, ("at",), r2) if ending in {"iva", "ivo", "ivas", "ivos"} else kept


def _spanish_verb(word: str, rv: int) -> str:
    ending = longest(word, _Y_VERB, rv)
    if ending and word[: -len(ending)].endswith("u"):
        return word[: -len(ending)]
    ending = longest(word, _SPANISH_VERB, rv)
    kept = word[: len(word) - len(ending)]
    return kept[:-1] if ending in {"en", "es", "eis", "emos"} and kept.endswith("gu") else kept
