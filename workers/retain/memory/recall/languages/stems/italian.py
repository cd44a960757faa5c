"""Italian stems. Source: https://snowballstem.org/algorithms/italian/stemmer.html"""

from __future__ import annotations

from retain.memory.recall.languages.stems.regions import listed, longest, marked, r1_r2, romance_rv, without

_VOWELS = frozenset("aeiou")
_PRONOUNS = listed(
    "ci gli la le li lo mi ne si ti vi sene gliela gliele glieli glielo gliene mela mele meli melo mene tela tele teli"
    " telo tene cela cele celi celo cene vela vele veli velo vene"
)
_PLAIN = frozenset(
    (
        "anza anze ico ici ica ice iche ichi ismo ismi abile abili ibile ibili ista iste isti oso osi osa ose mente atrice"
        " atrici ante anti"
    ).split()
)
_REPLACED = {"logia": "log", "logie": "log", "uzione": "u", "uzioni": "u", "usione": "u", "usioni": "u", "enza": "ente",
             "enze": "ente"}  # fmt: skip
_NOUNS = frozenset("amento amenti imento imenti".split())
_AGENTS = frozenset("azione azioni atore atori".split())
_STANDARD = listed(" ".join([*_PLAIN, *_REPLACED, *_NOUNS, *_AGENTS, "amente ita ivo ivi iva ive"]))
_VERB = listed(
    "ammo ando ano are arono asse assero assi assimo ata ate ati ato ava avamo avano avate avi avo emmo enda ende endi"
    " endo erai eranno ere erebbe erebbero erei eremmo eremo ereste eresti erete erono essero ete eva evamo evano"
    " evate evi evo iamo immo irai iranno ire irebbe irebbero irei iremmo iremo ireste iresti irete irono isca"
    " iscano isce isci isco iscono issero ita ite iti ito iva ivamo ivano ivate ivi ivo ono uta ute uti uto ar ir"
)


def stem(word: str) -> str:
    """Return the stem of a folded word."""
    word = marked(word.replace("qu", "qU"), "ui", _VOWELS)
    r1, r2 = r1_r2(word, _VOWELS)
    rv = romance_rv(word, _VOWELS)
    word = _without_pronoun(word, rv)
    found = _standard(word, rv, r1, r2)
    if found == word:
        found = word[: len(word) - len(longest(word, _VERB, rv))]
    if len(found) > rv and found[-1] in "aeio":
        found = found[:-1]
        found = found[:-1] if found.endswith("i") and len(found) > rv else found
    return (found[:-1] if found.endswith(("ch", "gh")) and len(found) - 1 > rv else found).lower()


def _without_pronoun(word: str, rv: int) -> str:
    pronoun = longest(word, _PRONOUNS, rv)
    kept = word[: len(word) - len(pronoun)]
    host = longest(kept, ("ando", "endo", "ar", "er", "ir"), rv) if pronoun else ""
    if not host:
        return word
    return kept if len(host) > 2 else f"{kept}e"


def _standard(word: str, rv: int, r1: int, r2: int) -> str:
    ending = longest(word, _STANDARD)
    at = len(word) - len(ending)
    kept = word[:at]
    if not ending or at < (r1 if ending == "amente" else rv if ending in _NOUNS else r2):
        return word
    if ending in _REPLACED:
        return kept + _REPLACED[ending]
    if ending in _AGENTS:
        return without(kept, ("ic",), r2)
    if ending == "amente":
        short = without(kept, ("iv",), r2)
        return without(kept, ("abil", "os", "ic"), r2) if short == kept else without(short, ("at",), r2)
    if ending == "ita":
        return without(kept, ("abil", "ic", "iv"), r2)
    if ending in {"ivo", "ivi", "iva", "ive"}:
        short = without(kept, ("at",), r2)
        return kept if short == kept else without(short, ("ic",), r2)
    return kept
