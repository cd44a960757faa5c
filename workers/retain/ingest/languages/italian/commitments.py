"""Rules for what somebody has to do, plans to do, and wants done, in Italian."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_NAMED = (
    r"(?!.*\b(?:\w+(?:ar|er|ir|ur)(?:mi|ti|l[oaie]|gli|ci|vi|ne)|ciò|lei|lui|loro|te|voi|quel\w*|"
    r"quest[oaei](?! (?:pomeriggio|settimana|sera|mattina))|tu[oae]|tuoi|suo|sua)\b)"
)
"""Not followed by who or what only the conversation names."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "remind me",
        r"<PLEASE>[Rr]icordami (?P<object>(?!come\b|dove\b|quando\b|chi\b).*\b(?:di|che)\b.+)$",
        "task",
        "{speaker} chiede un promemoria: {object}",
        0.9,
        whole=True,
    ),
    ExtractionRule(
        "has to",
        rf"<I>[Dd]evo (?P<object>(?=.*<DUE>){_NAMED}(?!essere|stare|avere|dire|ammettere|confessare)[a-zàèéìòù].+)$",
        "task",
        "{speaker} deve {object}",
        0.8,
    ),
    ExtractionRule(
        "appointment",
        rf"<I>(?:[Hh]o|[Aa]bbiamo) (?P<object>(?=.*<DUE>){_NAMED}(?:un |una |un'|il |la |l'|il mio |la mia )?"
        r"(?:[a-zàèéìòù]+ )?(?:appuntamento|riunione|esame|colloquio|volo|operazione|matrimonio|visita|intervista)\b.+)$",
        "plans",
        "{speaker} ha {object}",
        0.8,
    ),
    ExtractionRule(
        "plans",
        r"<I>(?:[Vv]ado|[Pp]arto|[Vv]olo|[Mm]i trasferisco|[Cc]i trasferiamo|[Aa]ndrò) (?P<object>(?=.*<SOON>)"
        r"(?:[a-zàèéìòù' ]{0,30}? )?(?:a|ad|in|per|negli|nel) <PLACE>.*)$",
        "plans",
        "{speaker} ha in programma di andare {object}",
        0.8,
    ),
    ExtractionRule(
        "from now on",
        r"<PLEASE>(?:[Dd]'ora in poi|[Dd]a ora in poi|[Ii]n futuro),? (?P<object>(?:<DO>\b|non <NOTDO>\b|sempre\b).+)$",
        "instruction",
        "Istruzione di {speaker}: d'ora in poi, {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "always",
        r"<PLEASE>(?P<object><DO> <EVER>\b.+)$",
        "instruction",
        "Istruzione di {speaker}: {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "never",
        r"<PLEASE>(?P<object>[Nn]on <NOTDO> mai\b.+)$",
        "instruction",
        "Istruzione di {speaker}: {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "address me",
        r"<PLEASE>(?P<object>(?:[Dd]ammi|[Dd]iamoci) del (?:tu|lei))\b",
        "instruction",
        "Istruzione di {speaker}: {object}",
        0.85,
        whole=True,
    ),
)
