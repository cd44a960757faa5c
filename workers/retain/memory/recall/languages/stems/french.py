"""French stems. Source: https://snowballstem.org/algorithms/french/stemmer.html"""

from __future__ import annotations

from retain.memory.recall.languages.stems.regions import VOWELS, listed, longest, r1_r2, without

_STANDARD = listed(
    "ance ique isme able iste eux ances iques ismes ables istes atrice ateur ation atrices ateurs ations logie logies"
    " usion ution usions utions ence ences ement ements ite ites if ive ifs ives eaux aux euse euses issement issements"
    " amment emment ment ments"
)
_PLAIN = frozenset("ance ique isme able iste eux ances iques ismes ables istes".split())
_I_VERB = listed(
    "imes ites i ie ies ir ira irai iraient irais irait iras irent irez iriez irions irons iront is issaient issais"
    " issait issant issante issantes issants isse issent isses issez issiez issions issons"
)
_VERB = listed(
    "ions ee ees erent er era erai eraient erais erait eras erez eriez erions erons eront ez iez ames ates a ai aient"
    " ais ait ant ante antes ants as asse assent asses assiez assions"
)
_AFTER_E = frozenset("ames ates a ai aient ais ait ant ante antes ants as asse assent asses assiez assions".split())
_LAST = listed("ion ier iere e")
_ADVERBS = frozenset("amment emment ment ments".split())


def stem(word: str) -> str:
    """Return the stem of a folded word."""
    r1, r2 = r1_r2(word)
    rv = _rv(word)
    found, ending = _standard(word, rv, r1, r2)
    verb = found
    if found == word or ending in _ADVERBS:
        verb = _verb(found, rv, r2)
    word = _last(word, rv, r2) if verb == word else f"{verb[:-1]}i" if verb.endswith("y") else verb
    return word[:-1] if word.endswith(("enn", "onn", "ett", "ell", "eill")) else word


def _rv(word: str) -> int:
    if word.startswith(("par", "col", "tap")) or (len(word) > 2 and word[0] in VOWELS and word[1] in VOWELS):
        return min(3, len(word))
    return next((place + 1 for place in range(1, len(word)) if word[place] in VOWELS), len(word))


def _standard(word: str, rv: int, r1: int, r2: int) -> tuple[str, str]:
    """Return the word without its standard ending, and that ending, or the word itself if it has none."""
    ending = longest(word, _STANDARD)
    at = len(word) - len(ending)
    kept = word[:at]
    in_r2 = at >= r2
    found = word
    if not ending:
        return word, ""
    if ending in _PLAIN:
        found = kept if in_r2 else word
    elif ending.startswith(("at", "ic")):
        found = _ic(kept, r2) if in_r2 else word
    elif ending.startswith("logie"):
        found = f"{kept}log" if in_r2 else word
    elif ending.startswith(("usion", "ution")):
        found = f"{kept}u" if in_r2 else word
    elif ending.startswith("ence"):
        found = f"{kept}ent" if in_r2 else word
    elif ending in {"ement", "ements"}:
        found = _before_ement(kept, rv, r1, r2) if at >= rv else word
    elif ending in {"ite", "ites"}:
        found = _before_ite(kept, r2) if in_r2 else word
    elif ending.startswith(("if", "ive")):
        short = without(kept, ("at",), r2)
        found = (kept if short == kept else _ic(short, r2)) if in_r2 else word
    elif ending == "eaux":
        found = f"{kept}eau"
    elif ending == "aux":
        found = f"{kept}al" if at >= r1 else word
    elif ending.startswith("euse"):
        found = kept if in_r2 else f"{kept}eux" if at >= r1 else word
    elif ending.startswith("issement"):
        found = kept if at >= r1 and kept[-1] not in VOWELS else word
    elif ending in {"amment", "emment"}:
        found = f"{kept}{ending[0]}nt" if at >= rv else word
    else:
        found = kept if at > rv and kept[-1] in VOWELS else word
    return found, ending if found != word else ""


def _ic(word: str, r2: int) -> str:
    if not word.endswith("ic"):
        return word
    return word[:-2] if len(word) - 2 >= r2 else f"{word[:-2]}iqu"


def _before_ement(word: str, rv: int, r1: int, r2: int) -> str:
    before = longest(word, ("iqu", "abl", "eus", "ier", "iv"))
    at = len(word) - len(before)
    match before:
        case "iv" if at >= r2:
            return without(word[:at], ("at",), r2)
        case "eus":
            return word[:at] if at >= r2 else f"{word[:at]}eux" if at >= r1 else word
        case "abl" | "iqu" if at >= r2:
            return word[:at]
        case "ier" if at >= rv:
            return f"{word[:at]}i"
        case _:
            return word


def _before_ite(word: str, r2: int) -> str:
    before = longest(word, ("abil", "ic", "iv"))
    at = len(word) - len(before)
    if before == "abil":
        return word[:at] if at >= r2 else f"{word[:at]}abl"
    return _ic(word, r2) if before == "ic" else word[:at] if before and at >= r2 else word


def _verb(word: str, rv: int, r2: int) -> str:
    ending = longest(word, _I_VERB, rv)
    at = len(word) - len(ending)
    if ending and at > rv and word[at - 1] not in VOWELS:
        return word[:at]
    ending = longest(word, _VERB, rv)
    at = len(word) - len(ending)
    if not ending or (ending == "ions" and at < r2):
        return word
    return without(word[:at], ("e",), rv) if ending in _AFTER_E else word[:at]


def _last(word: str, rv: int, r2: int) -> str:
    if len(word) > 1 and word.endswith("s") and word[-2] not in "aious":
        word = word[:-1]
    ending = longest(word, _LAST, rv)
    at = len(word) - len(ending)
    match ending:
        case "ion":
            return word[:at] if at >= r2 and at > rv and word[at - 1] in "st" else word
        case "ier" | "iere":
            return f"{word[:at]}i"
        case "e":
            return word[:at]
        case _:
            return word
