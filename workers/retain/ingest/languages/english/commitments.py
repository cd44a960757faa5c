"""Rules for what somebody has to do, plans to do, and wants done."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "remind me",
        r"(?:[Pp]lease,? )?[Rr]emind me (?:again )?"
        r"(?P<object>(?:(?:on|at|in|next|every) [\w: ]{1,30} )?(?:(?:tomorrow|tonight) )?(?:to|about) .+)$",
        "task",
        "{speaker} asked to be reminded {object}",
        0.9,
        whole=True,
    ),
    ExtractionRule(
        "do not let me forget",
        r"(?:[Pp]lease,? )?(?:[Dd]on't|[Dd]o not) let me forget (?P<object>(?:to|about) .+)$",
        "task",
        "{speaker} asked to be reminded {object}",
        0.9,
        denial="required",
        whole=True,
    ),
    ExtractionRule(
        "has to",
        r"<I>(?:'ve got to| have to| need to| must) "
        r"(?P<object>(?!(?:be|have|been|had|say|admit|go now)\b)[a-z]+ .*<DUE>.*)$",
        "task",
        "{speaker} has to {object}",
        0.8,
    ),
    ExtractionRule(
        "plans",
        r"<WERE> <ADV>(?P<object>(?:flying|travell?ing|moving|going|driving|heading|relocating) to <PLACE> "
        r".*(?:<DUE>|\b(?:in|on|this|next) (?:<MONTH>|\w*day|summer|winter|spring|autumn|fall|\d)).*)$",
        "plans",
        "{speaker} is {object}",
        0.8,
    ),
    ExtractionRule(
        "appointment",
        r"<WE>(?: have|'ve got) (?P<object>an? (?:[\w'-]+ ){0,3}?"
        r"(?:appointment|meeting|interview|exam|flight|surgery|wedding|deadline) .*<DUE>.*)$",
        "plans",
        "{speaker} has {object}",
        0.8,
    ),
    ExtractionRule(
        "from now on",
        r"(?:[Pp]lease,? )?(?:[Ff]rom now on|[Gg]oing forward|[Ff]rom here on)[,:]? (?:please )?"
        r"(?P<object>(?!(?:I|I'm|I'll|I've|we|my|our|he|she|they|it|things|life)\b)[A-Za-z].+)$",
        "instruction",
        "{speaker} instructs: from now on, {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "in future",
        r"[Ii]n (?:the )?future,? (?:please )?(?P<object>(?:(?:always|never|do not|don't) )?<DO>\b.+)$",
        "instruction",
        "{speaker} instructs: in future, {object}",
        0.75,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "always, never",
        r"(?:[Pp]lease,? )?(?:[Yy]ou (?:should|must) )?(?P<object>(?:[Aa]lways|[Nn]ever) <DO>\b .+)$",
        "instruction",
        "{speaker} instructs: {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "do not ever",
        r"(?:[Pp]lease,? )?(?P<object>(?:[Dd]on't|[Dd]o not) ever <DO>\b .+)$",
        "instruction",
        "{speaker} instructs: {object}",
        0.8,
        denial="required",
        whole=True,
    ),
)
