"""How people speak about themselves in Italian."""

from __future__ import annotations

import re
from collections.abc import Iterator

from retain.ingest.languages.language import Ending, Expression, Speech, Things

_VERBS = (
    "(?:sono|sto|vivo|abito|ho|lavoro|studio|parlo|gioco|suono|imparo|odio|detesto|preferisco|adoro|amo|mangio|bevo|prendo|"
    "devo|fumo|vado|vengo|parto|voglio|posso|so|faccio|sopporto|ero|avevo|viviamo|abitiamo|abbiamo|siamo)"
)
"""Forms that say who speaks, as no pronoun has to."""
_TASTES = "(?:piace|piacciono|piaceva|piacevano)"
_CONJUNCTION = "(?:e|ed|ma|quindi|perché|poiché|o|poi|allora|anche|inoltre|però|mentre|bensì)"
_SUBJECT = (
    rf"(?:io\b|anch'io\b|(?:il |la |i |le )?(?:mi[oae]|miei)\b|mi\b|a me\b|a (?:lui|lei|loro|te|mi[oae]|miei)\b|"
    rf"non (?:mi )?(?:{_VERBS}|{_TASTES})\b|{_VERBS}\b|ci\b|(?:il |la |i |le )?nostr[oaie]\b|lui\b|lei\b|loro\b|tu\b|"
    r"voi\b|noi\b|ti\b|gli piac|le piac|tuo\b|tua\b|è\b|c'è\b|sei\b|hai\b|era\b|erano\b|hanno\b|ha\b|questo è\b|si\b)"
)

SPEECH = Speech(
    personal=Expression(
        rf"\b(?:io|anch'io|mio|mia|mie|miei|mi (?:piac|chiam|trasfer|sono)\w*|{_VERBS}|nostr[oaie]|sempre|mai|d'ora in poi|"
        r"da ora in poi|in futuro|ricordami|chiamami|chiamatemi|dammi|diamoci|contattami|scrivimi|vivevo|lavoravo)\b"
    ),
    asking=Expression(
        r"(?:(?:e|ma|allora|o|beh|bene|ciao|ehi|ok),? )*(?:chi|che cosa|cosa|quando|dove|perché non|come mai|"
        r"come stai|quant[oaie]|qual|quale|quali|puoi|potresti|sai|vuoi|hai|sei|ti piac\w+|posso|dovrei|devo dire)\b"
    ),
    hedged=Expression(
        r"\b(?:se(?! (?:stess[oa]|ne)\b)|forse|magari|probabilmente|possibilmente|presumibilmente|apparentemente|suppon\w*|"
        r"immagin\w*|credo|credevo|penso|pensavo|pensato|spero|speravo|vorrei|vorremmo|potrei|dovrei|sarei|avrei|farei|"
        r"piacerebbe\w*|\w+er(?:ei|ebbe|ebbero)|\w+ir(?:ei|ebbe)|sogno|sognato|sognavo|scommetto|dubito|fossi|avessi|"
        r"vivessi|scherz\w+|per esempio|ad esempio|facendo finta|fai finta|come se|a meno che|nel caso|personaggio|romanzo|"
        r"ruolo|non (?:ne )?sono sicur[oa]|quasi|sembra)\b"
    ),
    reported=Expression(
        r"\b(?:dice|dicono|detto|dissi|disse|dicevo|diceva|dico|racconta\w*|raccontato|chies[eti]\w*|domand(?:a|ò|"
        r"ato)|secondo|"
        r"scritto|scrive che|afferm\w*|sostiene|rispost[oa]|rispose|sentito|citazione|annunci\w*|mentito|bugia)\b"
    ),
    negated=Expression(r"\b(?:non|mai|niente|nulla|nessun\w*|né|senza|nemmeno|neanche|neppure|appena)\b"),
    lead=Expression(
        r"(?:(?:ciao|salve|buongiorno|buonasera|ehi|hey|car[oa] \w+|sì|si(?=[,.!])|no(?=[,.;!])|ok|okay|va bene|"
        r"d'accordo|bene|"
        r"beh|be'|certo|ah|oh|wow|dunque|allora|quindi|e|ma|in realtà|a dire il vero|veramente|davvero|onestamente|"
        r"sinceramente|francamente|fantastico|bello|grande|grandioso|grazie|scusa|mi dispiace(?=[,.!])|piacere|figo|forte|"
        r"comunque|a proposito|tra l'altro|haha|ahah|lol|inoltre|anche|esatto|esattamente|attualmente|ora|adesso|"
        r"personalmente|al momento|nota|infatti|capito|però|poi)(?!\w)[\s,.!:;-]*)*"
    ),
    new_subject=Expression(
        rf"(?:\s*[,;:]|\s+[.-])?\s+(?:{_CONJUNCTION} )*"
        rf"(?=(?:(?:ora|adesso|attualmente|oggi) )?{_SUBJECT}|(?:ricordami|chiamami)\b|(?:d'|da )ora in poi\b)"
    ),
    joined=Expression(rf"[,;:.]|\s-\s|\b{_CONJUNCTION}\s*$"),
    contrast=Expression(r",? (?:e |ma )?(?P<other>non (?:a|in|di|da|al|alla|con|per|il|la) [^,]+)$"),
)

THINGS = Things(
    ends=(
        Expression(
            r"\s*(?:[;:()]|\s-\s|\s\.\s|,? \b(?:perché|poiché|siccome|dato|ma|però|quando|mentre|come|se|anche se|"
            r"tranne|eccetto|"
            r"soprattutto|specialmente|in particolare|prima|dopo|fino|così|grazie|piuttosto|bensì|quasi|tanto|invece|"
            r"più che|"
            r"meglio che|e tutto il resto|e cose|in (?:inverno|estate|autunno|primavera)|d'(?:inverno|estate)|al mattino|"
            r"la mattina|la sera|di notte|nel (?:mio )?tempo libero|nei fine settimana|per favore|da quando|"
            r"da (?:anni|tempo)|"
            r"dove|quindi|credo|grazie|vero|tu che|e (?:tu|te|lei|voi))\b|, (?:che|cui|chi|una cosa|un'altra cosa)\b).*$"
        ),
        Expression(r"(?:,| e)(?=[^,]*\b(?:è|sono|era|erano)(?!\w)).*$"),
        Expression(
            rf"(?:,? ed?|,| o) (?=(?:{_SUBJECT}|\w+iamo\b|ne\b|recentemente\b|sta\b|anche\b|mai\b|sempre\b|a volte\b|"
            rf"poi\b|così\b|lo\b|vado\b|per questo\b|basta\b|via\b|altro\b|tutto\b|cose\b)).*$"
        ),
        Expression(
            r"(?:,? (?:anche|molto|tanto|tantissimo|moltissimo|parecchio|abbastanza|troppo|sempre|davvero|veramente|"
            r"un sacco|"
            r"in generale|a volte|ogni tanto|ultimamente|adesso|ora|oggi|ogni \w+|tutti i giorni|tutto il (?:tempo|giorno)|"
            r"più di ogni (?:altra )?cosa|più di tutto|neanche|nemmeno|affatto|per niente|per ora|al momento|personalmente|"
            r"comunque|(?:ad|per) essere (?:sincer|onest)[oa]|da sol[oa]|più|spesso|in realtà|di solito|da morire|"
            r"proprio|punto|pure|signor[ae]?|vero|(?:ah|ha){2,}h?|lol|xd))+$"
        ),
    ),
    none=Expression(
        r"(?:(?:e|o|ed|ma|quest[oaei]|quell[oaei]|quel|quei|quegli|lui|lei|loro|noi|voi|entramb[ie]|tutt[oaie]|niente|nulla|"
        r"qualcosa|qualcuno|qualche|alcun\w*|come|quando|dove|perché|cosa|chi|quale|molto|anche|solo|davvero|troppo|"
        r"più|meno|meglio|non|mai|né|nessun\w*|tanto|così|essere|stare|(?:fin|almeno|idea|modo|cosa|parte|po'?|sacco|fatto|"
        r"aspetto|posto|suono|"
        r"tuo|pensiero|nome|stesso)(?=\s|$)|(?:due|tre)$|(?:fare|dire) cose$|cose$|che|di|a|da|in|ciò|pensare|credere|"
        r"sapere|"
        r"vedere(?=$| [cs])|dire|avere|ogni|tale|con|per|uno?$|una$|altr[oaie]|me|te|se|ne|ci|sia|molt[iae]|tant[iae]|"
        r"poch[ie]|il|lo|la|i|gli|le|parecchi\w*|abbastanza|vederl[aoie]|soltanto|pure|persone$|proprio)\b|l')"
    ),
    definite=Expression(r"(?!)"),
    pointing=Expression(
        r"\b(?:tu|te|ti|tuo|tua|tuoi|tue|suo|sua|suoi|sue|lui|lei|loro|voi|vostr[oaie]|quest[oaei]|quell[oaei]|quel|quei|"
        r"quegli|qui|qua|lì|là|mio|mia|miei|mie|nostr[oaie]|che|cui|chi|gli stessi|mi|me|ci|vi|tale|tali|stess[oaie]|"
        r"altr[oaie] cose?|così|intendo|almeno)\b|\bquest'|\bquell'|\b(?!\w*(?:cert[ie]|sert[ie]|spert[ie]|part[ie]|"
        r"carn[ei]|perl[ae]|[dtv]erne|urne)\b)\w+(?:ar|er|ir|ur)(?:mi|ti|l[oaie]|gli|ci|vi|ne|cene|sene|meli)\b"
    ),
    unfinished=Expression(
        r"(?:^|\s)(?:a|ad|di|del|della|per|con|in|su|da|e|o|il|lo|la|i|gli|le|un|una|mio|molto|al|alla|non|è|più|come|"
        r"un po)$"
    ),
    deed_ends=Expression(r"(?:,? (?:perché|poiché|ma|quindi) |,? (?:grazie|ok|va bene|per favore|per piacere)$).*$"),
)

AFTER_ENDED = Expression(
    r"\s*(?:$|[.,;:!)(]|-\s|\b(?:e|ma|da|dal|perché|poiché|bensì|ora|adesso|oggi|ieri|dopo|l'anno|quest|dallo|per)\b)"
)
"""What may follow the object of a fact that is over."""

_ENDED = Expression(
    rf"(?:io )?non (?P<verb>(?:mi )?(?:{_VERBS}|{_TASTES})) più (?!(?:che|di|molto|tanto|così|spesso)\b)(?P<rest>.+)$"
)
_STOPPED = Expression(
    r"(?:io )?(?:ho smesso di|una volta|prima|un tempo) (?P<verb>fumare|fumavo|lavorare|lavoravo|vivere|vivevo|prendere|"
    r"prendevo)\b(?P<rest>.*)$"
)
_SMOKE = re.compile(r"(?:io )?non fumo più\b(?P<rest>.*)$", re.IGNORECASE)
_DENIED = Expression(
    rf"(?:io )?non (?P<verb>{_VERBS}) (?!(?:solo|soltanto|sempre|esattamente|davvero|veramente|molto|tanto|così|più|meno|"
    r"tutt[oaie]|sicur[oa]|necessariamente|ancora|mai|un[oa]?|il|la|lo|i|gli|le|come|chi|proprio|affatto|troppo)\b|un'|l')"
    r"(?P<rest>.+)$"
)
_STILL = Expression(r"\b(?:ancora|di nuovo|nuovamente)\b")
_FIRST = {"fum": "sono fumatore", "lavor": "lavoro", "viv": "vivo", "prend": "prendo"}
_VERB = re.compile(
    r"^(?P<subject>A \{speaker\}|\{speaker\}|I?L['ao]?.+? di \{speaker\}) (?P<verb>(?:si )?\S+)", re.IGNORECASE
)


def endings(clause: str, _sentence: str) -> Iterator[Ending]:
    """Yield what a clause ends or denies: "Non vivo più a Roma", "Non sono vegetariana"."""
    if _STILL.search(clause):
        return
    stopped, smoke = _STOPPED.match(clause), _SMOKE.match(clause)
    if stopped is not None:
        first = next(first for stem, first in _FIRST.items() if stopped["verb"].casefold().startswith(stem))
        yield Ending(f"{first}{stopped['rest']}", "ended")
        return
    if smoke is not None:
        yield Ending(f"{_FIRST['fum']}{smoke['rest']}", "ended")
        return
    ended, denied = _ENDED.match(clause), _DENIED.match(clause)
    if ended is not None:
        yield Ending(f"{ended['verb']} {ended['rest']}", "ended")
    elif denied is not None:
        yield Ending(f"{denied['verb']} {denied['rest']}", "denied")


def ended_phrase(phrase: str) -> str:
    """Return the sentence for a fact that has ended, from a rule's for one that holds."""
    ended, found = _VERB.subn(r"\g<subject> non \g<verb> più", phrase, count=1)
    return ended if found else f"{phrase} (non più)"
