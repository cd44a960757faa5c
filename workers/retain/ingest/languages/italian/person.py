"""Rules for who somebody is in Italian: names, places, days, contact details, work, people."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_KIN = (("WOMAN", "una"), ("MAN", "un"))
"""Words for people and animals of somebody, and their article."""
_NAMED = (
    ("named relation", r"<AFTER>,? si chiama (?P<object><FIRST>)", 0.95),
    ("relation", r"<AFTER>(?:,(?= [^,]+,))? (?P<object>(?!<JOB>|<PURSUIT>)<FIRST>)", 0.85),
)

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "name",
        r"(?:<MY> (?:vero )?nome (?:completo )?è |<I>[Mm]i chiamo )(?P<object><NAME>)<END>",
        "name",
        "{speaker} si chiama {object}",
        0.95,
    ),
    ExtractionRule(
        "call me",
        r"(?:<PLEASE>[Cc]hiamami|<PLEASE>[Cc]hiamatemi|(?:[Tt]utti|[Gg]li amici|[Ii] miei amici) mi chiamano) "
        r"(?P<object><NAME>)<STOP>",
        "preferred_name",
        "{speaker} si fa chiamare {object}",
        0.9,
    ),
    ExtractionRule(
        "age",
        r"<I>[Hh]o (?:adesso |ora |già |solo )?(?P<object>\d{1,3}) anni(?! (?:di|in|da)\b)",
        "age",
        "{speaker} ha {object} anni",
        0.85,
    ),
    ExtractionRule(
        "lives in",
        r"<I>(?:[Vv]ivo|[Aa]bito|[Rr]isiedo|[Vv]iviamo|[Aa]bitiamo) <ADV>(?P<prep><IN>) ?(?P<object><PLACE>)<END>(?! \d)",
        "lives_in",
        "{speaker} vive {prep} {object}",
        0.9,
    ),
    ExtractionRule(
        "moved to",
        r"(?:[Mm]i sono (?:appena |recentemente )?trasferit[oa]|[Cc]i siamo (?:appena )?trasferiti) (?P<prep><IN>) ?"
        r"(?P<object><PLACE>)<STOP>",
        "lives_in",
        "{speaker} vive {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "comes from",
        r"<I>[Vv]engo <ADV>(?P<of><OF>)(?P<object><PLACE>)<STOP>",
        "comes_from",
        "{speaker} viene {of}{object}",
        0.8,
    ),
    ExtractionRule(
        "is from",
        r"(?:[Ii]o sono|[Ss]ono originari[oa]|[Ss]ono nativ[oa]) (?P<of>di |del |della |dell'|"
        r"degli )(?P<object><PLACE>)<STOP>",
        "comes_from",
        "{speaker} è {of}{object}",
        0.8,
    ),
    ExtractionRule(
        "grew up in",
        r"(?:<IM>|[Ss]ono nat[oa] e )cresciut[oa] (?P<prep><IN>) ?(?P<object><PLACE>)<END>",
        "grew_up_in",
        "{speaker} è cresciuto/a {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "born in a place",
        r"<IM>nat[oa] (?:<DATE> |nel \d{4} )?(?:e cresciut[oa] )?(?P<prep><IN>) ?(?P<object><PLACE>)<END>",
        "born_in",
        "{speaker} è nato/a {prep} {object}",
        0.9,
    ),
    ExtractionRule(
        "birthday",
        r"(?:<MY> compleanno è |<IM>nat[oa] )(?P<object><DATE>)",
        "birthday",
        "Il compleanno di {speaker} è {object}",
        0.95,
    ),
    ExtractionRule(
        "birth year",
        r"<IM>nat[oa] nel (?P<object>(?:19|20)\d\d)\b",
        "birth_year",
        "L'anno di nascita di {speaker} è {object}",
        0.95,
    ),
    ExtractionRule(
        "e-mail",
        r"(?:<MY> (?:nuov[oa] )?(?:indirizzo )?(?:e-?mail|mail|indirizzo di posta elettronica)(?: personale)? è|"
        r"<PLEASE>(?:[Ss]crivimi|[Cc]ontattami) (?:a|all'indirizzo)):? (?P<object><EMAIL>)",
        "email",
        "L'indirizzo e-mail di {speaker} è {object}",
        0.95,
    ),
    ExtractionRule(
        "phone",
        r"(?:<MY> (?:nuovo )?(?:numero|telefono|cellulare)(?: di (?:telefono|cellulare))? è(?: il)?|"
        r"<PLEASE>[Cc]hiamami al):? (?P<object><PHONE>)",
        "phone",
        "Il numero di telefono di {speaker} è {object}",
        0.9,
    ),
    ExtractionRule(
        "address",
        r"(?:<MY> (?:nuovo )?indirizzo (?:postale )?è|<I>(?:[Aa]bito|[Vv]ivo) in(?= (?:[Vv]ia|[Vv]iale|[Pp]iazza|"
        r"[Cc]orso)\b)):? (?P<object>(?=.*\d)(?!.*@)[\dA-Za-z].{5,120})$",
        "address",
        "L'indirizzo di {speaker} è {object}",
        0.85,
    ),
    ExtractionRule(
        "works at",
        r"<I>[Ll]avoro <ADV>(?:come [\w-]+ )?(?P<prep>per|da|presso|alla|all'|allo|al) ?"
        r"(?P<object>(?!(?:Natale|Pasqua)\b)(?:la |l'|il )?<ORG>)<END>",
        "works_at",
        "{speaker} lavora {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "workplace",
        r"<I>[Ll]avoro <ADV>(?:come [\w-]+ )?(?P<prep>in|per|presso|da) (?P<object><WORKPLACE>)<END>",
        "works_at",
        "{speaker} lavora {prep} {object}",
        0.8,
    ),
    ExtractionRule(
        "works as",
        r"<I>[Ll]avoro <ADV>(?:come|in qualità di) (?:un |una |un')?(?P<object>(?!(?:un|una|se|sempre|te|lei|mai|matt[oa]|"
        r"pazz[oa]|schiav[oa]|il|la|lo|i|gli|le|tutti|volontari[oa]|al|quando|libero|prima)\b)[a-zàèéìòù][\w-]*"
        r"(?: (?:di |del )?(?!(?:e|ma|in|per|con|da|dal|a|ad|la|il|lo|presso|nel|nella|al|alla|ora|che|è|durante)\b)"
        r"[a-zàèéìòù][\w-]*){0,2})<END>",
        "works_as",
        "{speaker} lavora come {object}",
        0.85,
    ),
    ExtractionRule(
        "job",
        r"(?:<IM><ADV>(?:un |una |un'|uno )?|<I>[Ff]accio (?:il |la |lo |l'))(?P<object><JOB>)(?:<STOP>|(?= (?:in|nel|"
        r"al|presso)\b))",
        "works_as",
        "{speaker} lavora come {object}",
        0.85,
    ),
    ExtractionRule(
        "pursuit",
        r"<IM><ADV>(?:un |una |un'|uno )?(?P<object><PURSUIT>)(?:<STOP>|(?= (?:in|nel|al|presso|all')\b))",
        "is",
        "{speaker} è {object}",
        0.85,
    ),
    ExtractionRule(
        "studies",
        r"<I>(?:[Ss]tudio|[Ss]to studiando) <ADV>"
        r"(?P<object>(?!(?:in|con|per|molto|poco|più|tanto|mio|mia|miei|mie|tutt[oaie]|ogni|duro|abbastanza|qui|da|di|a|al|"
        r"alla|un|una|il|lo|la|i|gli|le|sempre|sol[oa]|dal|come|e|qualcosa|anche|legale|nel|nella|sodo|fuori|su|sui|"
        r"<LANGUAGE>)\b)[a-zàèéìòù]+(?: (?:del |della |delle |di |e )?(?!(?:in|con|per|e|ma|da|dal|a|al|alla|perché|di|del|"
        r"della|la|il|ora|tutti|ogni|anche|dove|che|molto|prima|dopo|nel|nella|part|presso)\b)[a-zàèéìòù]+)?)<END>",
        "studies",
        "{speaker} studia {object}",
        0.85,
    ),
    ExtractionRule(
        "speaks",
        r"<I>[Pp]arlo <ADV>(?:(?:correntemente|fluentemente|un po' di|un po'|bene) )?"
        r"(?P<object><LANGUAGE>(?:(?:,? e|,| ed) <LANGUAGE>)*)(?: correntemente| fluentemente| molto bene| bene)?<STOP>",
        "speaks",
        "{speaker} parla {object}",
        0.9,
    ),
    ExtractionRule(
        "learns",
        r"<I>(?:[Ii]mparo|[Ss]to imparando|[Ss]tudio|[Ss]to studiando) <ADV>(?:a (?:parlare|suonare) )?"
        r"(?P<object>(?:<LANGUAGE>|<PLAYED>)(?:(?:,? e|,) (?:<LANGUAGE>|<PLAYED>))*)<END>",
        "learns",
        "{speaker} impara {object}",
        0.85,
    ),
    ExtractionRule(
        "plays music",
        r"<I>[Ss]uono <ADV>(?P<object><PLAYED>(?:(?:,? e|,) <PLAYED>)*)<END>",
        "plays",
        "{speaker} suona {object}",
        0.85,
    ),
    ExtractionRule(
        "plays a sport",
        r"<I>[Gg]ioco <ADV>a (?P<object><SPORT>)<END>",
        "plays",
        "{speaker} gioca a {object}",
        0.85,
    ),
    ExtractionRule(
        "marital status",
        r"<IM>(?:(?:adesso|ora|felicemente|ancora|appena) )?"
        r"(?P<object>(?:sposat[oa]|single|celibe|nubile|divorziat[oa]|vedov[oa]|fidanzat[oa]|separat[oa])<STOP>)",
        "marital_status",
        "{speaker} è {object}",
        0.85,
    ),
    *(
        ExtractionRule(
            f"{name}, {article}",
            rf"\b<MY> <AGED>(?P<relation><{part}>){pattern}",
            "has_{relation}",
            "{speaker} ha " + article + " {relation} che si chiama {object}",
            confidence,
            anywhere=True,
        )
        for part, article in _KIN
        for name, pattern, confidence in _NAMED
    ),
    ExtractionRule(
        "job of a relation",
        r"<MY> <AGED>(?P<relation><WOMAN>|<MAN>)<AFTER>(?:,? <FIRST>,?)? (?:è|lavora come|fa (?:il|la|lo)|fa l') ?"
        r"(?:un |una |un'|uno )?(?P<object><JOB>|<PURSUIT>)(?:<STOP>|(?= (?:in|nel|al|presso)\b))",
        "{relation}_works_as",
        "{relation} di {speaker}: {object}",
        0.8,
    ),
    ExtractionRule(
        "has some",
        r"<I>(?:[Hh]o|[Aa]bbiamo) <ADV>(?P<object>(?:un|una|due|tre|quattro|cinque|sei|sette|\d{1,2}) <COUNTED>)"
        r"(?:<STOP>|(?= (?:maggior[ei]|minor[ei]|piccol[oaie]|adorabil[ei]|bellissim[oaie]|chiamat[oaie]|che|in|di nome|"
        r"bianc[oa]|ner[oa]|grand[ei]|più|meravigliosi|gemelli|pelos[oi])\b))",
        "has",
        "{speaker} ha {object}",
        0.85,
    ),
    ExtractionRule(
        "has named",
        r"<I>(?:[Hh]o|[Aa]bbiamo) <ADV>(?:un|una) <AGED>(?P<relation><WOMAN>|<MAN>)<AFTER>,? (?:chiamat[oa]|che si chiama|"
        r"di nome) (?P<object><FIRST>)",
        "has_{relation}",
        "{speaker} ha {relation}: {object}",
        0.95,
    ),
)
