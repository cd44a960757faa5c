"""Rules for what somebody has to do, plans to do, and wants done, in German."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_GOES = (("fliege", "fliegt"), ("fahre", "fährt"), ("reise", "reist"), ("ziehe", "zieht"))

_NAMED = r"(?!.*\b(?:es|ihn|ihm|ihr|sie|Sie|Ihnen|dich|dir|euch|das hier|diese\w*)\b)"
"""Not followed by who or what only the conversation names."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "remind me",
        r"<PLEASE>[Ee]rinner(?:e|n Sie)? mich (?:bitte )?(?P<object>.*\b(?:daran|an)\b.+)$",
        "task",
        "{speaker} möchte erinnert werden: {object}",
        0.9,
        whole=True,
    ),
    ExtractionRule(
        "has to",
        rf"(?P<object>(?=.*<DUE>){_NAMED}.+)$",
        "task",
        "{speaker} muss {object}",
        0.8,
        verbs="muss",
    ),
    ExtractionRule(
        "appointment",
        rf"(?P<object>(?=.*<DUE>){_NAMED}(?=.*(?:[Tt]ermin|Prüfung|Vorstellungsgespräch|"
        r"Operation|Flug|Hochzeit|Meeting|Besprechung)\b).+)$",
        "plans",
        "{speaker} hat {object}",
        0.8,
        verbs="haben|habe|hab",
    ),
    *(
        ExtractionRule(
            f"plans, {by}",
            rf"(?P<object>(?=.*<DUE>){_NAMED}(?:(?!nach\b)[\w.]+ ){{0,4}}nach <PLACE>.*)$",
            "plans",
            "{speaker} " + of + " {object}",
            0.8,
            verbs=by,
        )
        for by, of in _GOES
    ),
    ExtractionRule(
        "from now on",
        r"<PLEASE>(?:[Aa]b (?:jetzt|sofort)|[Vv]on (?:jetzt|nun) an|[Ii]n Zukunft|[Zz]ukünftig|[Kk]ünftig),? (?:bitte )?"
        r"(?P<object>(?:<DO>|bitte)\b.+|(?:immer|nie|niemals|nur)\b[^,;]* (?=[a-zü])<DO>$)",
        "instruction",
        "Anweisung von {speaker}: künftig {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "always, never",
        r"<PLEASE>(?P<object><DO>\b(?: Sie)?(?: (?:mir|mich|uns))?(?: bitte)?(?: (?:mir|mich|uns))? <EVER>\b.+|"
        r"(?:[Ii]mmer|[Nn]iemals|[Nn]ie) (?![^,;]*\b(?:ich|wir|er|sie|es|man|du|ihr)\b)[^,;]+ (?=[a-zü])<DO>$)",
        "instruction",
        "Anweisung von {speaker}: {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "address me",
        r"<PLEASE>(?P<object>[Dd]uzen? (?:Sie )?mich|[Ss]iezen? (?:Sie )?mich|[Ss]prich mich (?:bitte )?mit (?:Du|du|"
        r"Sie) an)\b",
        "instruction",
        "Anweisung von {speaker}: {object}",
        0.85,
        whole=True,
    ),
)
