"""Rules for what somebody has to do, plans to do, and wants done, in Spanish."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_NAMED = (
    r"(?!.*\b(?:\w+(?:ar|er|ir)(?:l[aeo]s?|[mts]e)|eso|esto|usted|ustedes|ti|contigo|es[ea]|"
    r"est[ae](?! (?:noche|tarde|semana))|tu)\b)"
)
"""Not followed by who or what only the conversation names."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "remind me",
        r"<PLEASE>(?:[Rr]ecuérd[ae]me|[Rr]ecordame) (?P<object>.*\b(?:que|\w+(?:ar|er|ir)(?:me|l[aeo]s?|se)?)\b.*)$",
        "task",
        "{speaker} pide un recordatorio: {object}",
        0.9,
        whole=True,
    ),
    ExtractionRule(
        "has to",
        rf"<I>(?:[Tt]engo que|[Dd]ebo) (?P<object>(?=.*<DUE>){_NAMED}(?!ser|estar|haber|decir|admitir|"
        rf"confesar)[a-záéíóúñ].+)$",
        "task",
        "{speaker} tiene que {object}",
        0.8,
    ),
    ExtractionRule(
        "appointment",
        rf"<I>(?:[Tt]engo|[Tt]enemos) (?P<object>(?=.*<DUE>){_NAMED}(?:un |una |mi )?(?:[a-záéíóúñ]+ )?(?:cita|"
        rf"reunión|examen|entrevista|vuelo|operación|boda|consulta|turno)\b.+)$",
        "plans",
        "{speaker} tiene {object}",
        0.8,
    ),
    ExtractionRule(
        "plans",
        r"<I>(?:[Mm]e voy|[Vv]iajo|[Vv]uelo|[Vv]oy(?: a (?:ir|viajar))?|[Mm]e mudo|[Nn]os mudamos|"
        r"[Ss]algo) (?P<object>(?=.*<SOON>)(?:de viaje )?(?:[a-záéíóúñ ]{0,30}? )?(?:a|para) <PLACE>.*)$",
        "plans",
        "{speaker} tiene previsto ir {object}",
        0.8,
    ),
    ExtractionRule(
        "from now on",
        r"<PLEASE>(?:[Dd]e ahora en adelante|[Aa] partir de ahora|[Ee]n adelante),? (?P<object>(?:<DO>\b|no <NOTDO>\b|"
        r"nunca <NOTDO>\b|siempre\b).+)$",
        "instruction",
        "Instrucción de {speaker}: de ahora en adelante, {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "always",
        r"<PLEASE>(?P<object>(?:<DO> <EVER>|[Ss]iempre <DO>)\b.+)$",
        "instruction",
        "Instrucción de {speaker}: {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "never",
        r"<PLEASE>(?P<object>(?:(?:[Nn]unca|[Jj]amás) <NOTDO>|[Nn]o <NOTDO> (?:nunca|jamás))\b.+)$",
        "instruction",
        "Instrucción de {speaker}: {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "address me",
        r"<PLEASE>(?P<object>[Tt]ut[eé][ae]me|[Tt]rát[ae]me de (?:tú|usted|vos))(?=\s*(?:$|[.,!;]| por favor))",
        "instruction",
        "Instrucción de {speaker}: {object}",
        0.85,
        whole=True,
    ),
)
