"""Rules for who somebody is in Spanish: names, places, days, contact details, work, people."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_KIN = (("WOMAN", "una"), ("MAN", "un"))
"""Words for people and animals of somebody, and their article."""
_NAMED = (
    ("named relation", r"<AFTER>,? se llama (?P<object><FIRST>)", 0.95),
    ("relation", r"<AFTER>(?:,(?= [^,]+,))? (?P<object>(?!<JOB>|<PURSUIT>)<FIRST>)", 0.85),
)

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "name",
        r"(?:<MY> (?:verdadero )?nombre (?:completo )?es |(?:[Yy]o )?[Mm]e llamo )(?P<object><NAME>)<END>",
        "name",
        "{speaker} se llama {object}",
        0.95,
    ),
    ExtractionRule(
        "call me",
        r"(?:<PLEASE>[Ll]l[aá]m[ae]me|[Mm]e (?:dicen|llaman)|(?:[Tt]odos|[Tt]odo el mundo|[Mm]is amigos) me "
        r"(?:dicen|llaman|llama|dice)) (?P<object><NAME>)<STOP>",
        "preferred_name",
        "{speaker} se hace llamar {object}",
        0.9,
    ),
    ExtractionRule(
        "age",
        r"<I>[Tt]engo (?:ahora |ya |solo )?(?P<object>\d{1,3}) años(?! (?:de|viviendo|trabajando|en)\b)",
        "age",
        "{speaker} tiene {object} años",
        0.85,
    ),
    ExtractionRule(
        "lives in",
        r"<I>(?:[Vv]ivo|[Rr]esido|[Vv]ivimos) <ADV>en (?P<object><PLACE>)<END>(?! \d)",
        "lives_in",
        "{speaker} vive en {object}",
        0.9,
    ),
    ExtractionRule(
        "has lived in",
        r"<I>[Ll]levo (?:[\w-]+ ){1,5}?viviendo en (?P<object><PLACE>)<END>",
        "lives_in",
        "{speaker} vive en {object}",
        0.85,
    ),
    ExtractionRule(
        "moved to",
        r"(?:[Mm]e (?:he )?(?:mudé|mudado)|[Nn]os (?:hemos )?(?:mudamos|mudado)|[Aa]cabo de mudarme) "
        r"(?:recientemente |hace poco )?a (?P<object><PLACE>)<STOP>",
        "lives_in",
        "{speaker} vive en {object}",
        0.85,
    ),
    ExtractionRule(
        "comes from",
        r"(?:<IM>(?:originari[oa] |originalmente )?|[Pp]rovengo )<ADV>(?:de|del) (?P<object><PLACE>)<STOP>",
        "comes_from",
        "{speaker} es de {object}",
        0.8,
    ),
    ExtractionRule(
        "grew up in",
        r"<I>(?:[Cc]recí|[Mm]e crié|[Nn]ací y crecí) en (?P<object><PLACE>)<END>",
        "grew_up_in",
        "{speaker} creció en {object}",
        0.85,
    ),
    ExtractionRule(
        "born in a place",
        r"<I>[Nn]ací (?:(?:el )?<DATE> |en \d{4} )?(?:y crecí )?en (?P<object><PLACE>)<END>",
        "born_in",
        "{speaker} nació en {object}",
        0.9,
    ),
    ExtractionRule(
        "birthday",
        r"(?:<MY> cumpleaños es |[Cc]umplo años |<I>[Nn]ací )(?P<object><DATE>)",
        "birthday",
        "El cumpleaños de {speaker} es {object}",
        0.95,
    ),
    ExtractionRule(
        "birth year",
        r"<I>[Nn]ací en (?P<object>(?:19|20)\d\d)\b",
        "birth_year",
        "El año de nacimiento de {speaker} es {object}",
        0.95,
    ),
    ExtractionRule(
        "e-mail",
        r"(?:<MY> (?:nuev[oa] )?(?:dirección de )?(?:correo(?: electrónico)?|e-?mail|mail)(?: personal)? es|"
        r"<PLEASE>(?:[Ee]scr[ií]b[ae]me|[Cc]ont[aá]ct[ae]me) (?:a|en)):? (?P<object><EMAIL>)",
        "email",
        "El correo electrónico de {speaker} es {object}",
        0.95,
    ),
    ExtractionRule(
        "phone",
        r"(?:<MY> (?:nuevo )?(?:número|teléfono|móvil|celular)(?: de (?:teléfono|móvil|celular))? es(?: el)?|"
        r"<PLEASE>[Ll]l[aá]m[ae]me al):? (?P<object><PHONE>)",
        "phone",
        "El número de teléfono de {speaker} es {object}",
        0.9,
    ),
    ExtractionRule(
        "address",
        r"(?:<MY> (?:nueva )?dirección (?:postal )?es|<I>[Vv]ivo en(?= (?:la )?(?:[Cc]alle|[Aa]venida|[Pp]laza|"
        r"[Pp]aseo))):? (?P<object>(?:la )?(?=.*\d)(?!.*@)[\dA-Za-z].{5,120})$",
        "address",
        "La dirección de {speaker} es {object}",
        0.85,
    ),
    ExtractionRule(
        "works at",
        r"<I>[Tt]rabajo <ADV>(?:como [\w-]+ |de <JOB> )?(?P<prep>en|para) (?P<object>(?!<AREA>\b)<ORG>)<END>",
        "works_at",
        "{speaker} trabaja {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "workplace",
        r"<I>[Tt]rabajo <ADV>(?:como [\w-]+ |de <JOB> )?(?P<prep>en|para) "
        r"(?P<object>una? (?:(?:pequeñ[oa]|gran) )?<WORKPLACE>)<END>",
        "works_at",
        "{speaker} trabaja {prep} {object}",
        0.8,
    ),
    ExtractionRule(
        "works as",
        r"<I>[Tt]rabajo <ADV>como (?P<object>(?!(?:un|una|si|siempre|tú|usted|nunca|loc[oa]|burr[oa]|esclav[oa]|mul[oa]|"
        r"el|la|los|todo|voluntari[oa])\b)[a-záéíóúñ][\w-]*(?: (?:de |del )?(?!(?:y|pero|en|para|con|por|desde|a|al|"
        r"la|el|los|las)\b)[a-záéíóúñ][\w-]*){0,2})<END>",
        "works_as",
        "{speaker} trabaja como {object}",
        0.85,
    ),
    ExtractionRule(
        "job",
        r"(?:<IM>|[Tt]rabajo de )<ADV>(?:un |una )?(?P<object><JOB>)(?:<STOP>|(?= en\b))",
        "works_as",
        "{speaker} trabaja como {object}",
        0.85,
    ),
    ExtractionRule(
        "pursuit",
        r"(?:<IM>|[Ee]stoy (?=jubilad))<ADV>(?:un |una )?(?P<object><PURSUIT>)(?:<STOP>|(?= en\b))",
        "is",
        "{speaker} es {object}",
        0.85,
    ),
    ExtractionRule(
        "studies",
        r"<I>(?:[Ee]studio|[Ee]stoy estudiando) <ADV>"
        r"(?P<object>(?!(?:en|con|para|mucho|poco|más|much[oa]s|mi|mis|tod[oa]s?|cada|muy|duro|bastante|aquí|por|de|"
        r"un|una|lo|el|la|los|las|a|al|tanto|siempre|nunca|dos|tres|sol[oa]|desde|como|español|fuera|y|algo|<LANGUAGE>)\b)"
        r"[a-záéíóúñ]+(?: (?:de |de la |de las |y )?(?!(?:en|con|para|y|pero|por|desde|a|al|porque|de|del|la|el|ahora|todos|"
        r"cada|también|donde|que|mucho|antes|después|dos|tres)\b)[a-záéíóúñ]+)?)<END>",
        "studies",
        "{speaker} estudia {object}",
        0.85,
    ),
    ExtractionRule(
        "speaks",
        r"<I>[Hh]ablo <ADV>(?:(?:con fluidez|un poco de|bien|algo de) )?(?P<object><LANGUAGE>(?:(?:,? y|,| e) <LANGUAGE>)*)"
        r"(?: con fluidez| muy bien| bien| perfectamente)?<STOP>",
        "speaks",
        "{speaker} habla {object}",
        0.9,
    ),
    ExtractionRule(
        "learns",
        r"<I>(?:[Aa]prendo|[Ee]stoy aprendiendo|[Ee]studio|[Ee]stoy estudiando) <ADV>(?:a (?:hablar|tocar) )?"
        r"(?P<object>(?:<LANGUAGE>|<PLAYED>)(?:(?:,? y|,) (?:<LANGUAGE>|<PLAYED>))*)<END>",
        "learns",
        "{speaker} aprende {object}",
        0.85,
    ),
    ExtractionRule(
        "plays music",
        r"<I>[Tt]oco <ADV>(?:bien )?(?P<object><PLAYED>(?:(?:,? y|,) <PLAYED>)*)<END>",
        "plays",
        "{speaker} toca {object}",
        0.85,
    ),
    ExtractionRule(
        "plays a sport",
        r"<I>[Jj]uego <ADV>(?:al |a las |a los |a )(?P<object><SPORT>)<END>",
        "plays",
        "{speaker} juega a {object}",
        0.85,
    ),
    ExtractionRule(
        "marital status",
        r"(?:<IM>|(?:[Yy]o )?[Ee]stoy )(?:(?:ahora|felizmente|todavía|aún|recién) )?"
        r"(?P<object>(?:casad[oa]|solter[oa]|divorciad[oa]|viud[oa]|prometid[oa]|separad[oa])<STOP>)",
        "marital_status",
        "{speaker} está {object}",
        0.85,
    ),
    *(
        ExtractionRule(
            f"{name}, {article}",
            rf"\b<MY> <AGED>(?P<relation><{part}>){pattern}",
            "has_{relation}",
            "{speaker} tiene " + article + " {relation} que se llama {object}",
            confidence,
            anywhere=True,
        )
        for part, article in _KIN
        for name, pattern, confidence in _NAMED
    ),
    ExtractionRule(
        "job of a relation",
        r"<MY> <AGED>(?P<relation><WOMAN>|<MAN>)<AFTER>(?:,? <FIRST>,?)? (?:es|trabaja (?:como|de)) (?:un |una )?"
        r"(?P<object><JOB>|<PURSUIT>)(?:<STOP>|(?= en\b))",
        "{relation}_works_as",
        "{relation} de {speaker}: {object}",
        0.8,
    ),
    ExtractionRule(
        "has some",
        r"<I>(?:[Tt]engo|[Tt]enemos) <ADV>(?P<object>(?:un|una|dos|tres|cuatro|cinco|seis|siete|\d{1,2}) <COUNTED>)"
        r"(?:<STOP>|(?= (?:mayor(?:es)?|menor(?:es)?|pequeñ[oa]s?|adorables?|preciosos?|llamad[oa]s?|que|en|de|varones|"
        r"blanc[oa]s?|negr[oa]s?|gemel[oa]s)\b))",
        "has",
        "{speaker} tiene {object}",
        0.85,
    ),
    ExtractionRule(
        "has named",
        r"<I>(?:[Tt]engo|[Tt]enemos) <ADV>una? <AGED>(?P<relation><WOMAN>|<MAN>)<AFTER>,? (?:llamad[oa]|que se llama|"
        r"de nombre) (?P<object><FIRST>)",
        "has_{relation}",
        "{speaker} tiene {relation}: {object}",
        0.95,
    ),
)
