"""Rules for likes and dislikes, what somebody cannot or will not have, their people and possessions."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_NO_AMOUNT = (
    r"(?!(?:much|many|enough|a lot|lots|tons|nearly|as|so|well|properly|that|it|too|very|at|in|on|out|before|after|when|"
    r"any ?more|there|here)\b)(?!.*\b(?:a lot|much|often|every|(?:all|most of) the time|all day|usually)\b)"
)
"""Not followed by how much or how often: who does not eat it every day eats it."""

_NO_THING = r"(?!(?:thing|things|part|parts|one|ones|kind|way|time|to|of|right|this|so|ever)\b)"

TASTES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "allergic",
        r"<IM> (?:[a-z]+ly |very |also )*allergic to (?P<object>.+)$",
        "allergic_to",
        "{speaker} is allergic to {object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "allergy",
        r"<I> have an? (?:severe |bad |serious |mild )?(?P<object>[a-z]+(?: [a-z]+)?) allergy<END>",
        "allergic_to",
        "{speaker} is allergic to {object}",
        0.95,
    ),
    ExtractionRule(
        "intolerant",
        r"<IM> (?P<object>(?:lactose|gluten|histamine|fructose)[- ]intolerant)",
        "has_condition",
        "{speaker} is {object}",
        0.95,
    ),
    ExtractionRule(
        "condition",
        r"<IM> (?:an? )?(?P<object>diabetic|coeliac|celiac|asthmatic|epileptic|colou?r-?blind|deaf|blind)<STOP>",
        "has_condition",
        "{speaker} is {object}",
        0.9,
    ),
    ExtractionRule(
        "diet",
        r"<IM> (?:an? )?(?:strict )?(?P<object>vegan|vegetarian|pescatarian)<STOP>",
        "diet",
        "{speaker} is {object}",
        0.9,
    ),
    ExtractionRule(
        "abstains",
        rf"<I> (?:do not|don't|never) (?P<deed>eat|drink|smoke) {_NO_AMOUNT}(?P<object>.+)$",
        "avoids",
        "{speaker} does not {deed} {object}",
        0.85,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "stopped eating",
        r"<I>(?:'ve| have)?(?: just| recently| finally)? (?:stopped|quit|gave up|given up) (?P<deed>eat|drink)ing "
        r"(?P<object>.+)$",
        "avoids",
        "{speaker} does not {deed} {object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "takes",
        r"(?:<I> <ADV>take|<IM> <ADV>taking) (?P<object>(?:\d+ ?m[cg]g? (?:of )?)?"
        r"(?!(?:it|them|this|that|care|part|place)\b)[A-Za-z][\w-]+(?: (?:tablets|pills|supplements))?)"
        r"(?= (?:daily|every (?:day|morning|evening|night)|once a|twice a|\d+ ?mc?g|for my|against my)\b)",
        "takes",
        "{speaker} takes {object}",
        0.8,
    ),
    ExtractionRule(
        "smoker",
        r"<IM> <ADV>an? (?:heavy |chain |regular |occasional )*(?P<object>smoker)<STOP>",
        "smokes",
        "{speaker} is a {object}",
        0.85,
    ),
    ExtractionRule(
        "favourite",
        rf"<MY> (?:all[- ]time |absolute )?favou?rite (?P<what>{_NO_THING}[a-z]+(?: (?!(?:ever|right|so|at|of)\b)[a-z]+)?)"
        r"(?: (?:ever|right now|so far|at the moment|of all time))? (?P<be>is|are) "
        r"(?:(?:definitely|absolutely|actually|also|still|just|by far|currently|now|always|called) )*"
        r"(?!(?:usually|by|in|on|at|from|between|with)\b)(?P<object>.+)$",
        "favorite_{what}",
        "{speaker}'s favorite {what} {be} {object}",
        0.9,
        functional=True,
        reading="thing",
    ),
    ExtractionRule(
        "likes",
        r"<I> <ADV>(?:like|love|enjoy|adore) (?P<object>.+)$",
        "likes",
        "{speaker} likes {object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "fan of",
        r"<IM> <ADV>(?:an? )?(?:(?:big|huge|great|massive|lifelong) )?"
        r"(?:fan of|fond of|keen on|crazy about|passionate about) (?P<object>.+)$",
        "likes",
        "{speaker} likes {object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "dislikes",
        r"<I> <ADV>(?:hate|dislike|detest|loathe|despise) (?!to\b)(?P<object>.+)$",
        "dislikes",
        "{speaker} dislikes {object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "does not like",
        r"<I> <ADV>(?:can't stand|cannot stand|can't bear|(?:do not|don't) (?:really |particularly |much )?"
        r"(?:like|enjoy|love|care for)) (?!to\b)(?P<object>.+)$",
        "dislikes",
        "{speaker} dislikes {object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "not a fan",
        r"<IM> (?:really )?not (?:really )?(?:an? )?(?:big )?(?:fan of|fond of|keen on) (?P<object>.+)$",
        "dislikes",
        "{speaker} dislikes {object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "prefers",
        r"<I> <ADV>(?:much )?prefer (?P<object>.+)$",
        "prefers",
        "{speaker} prefers {object}",
        0.85,
        reading="thing",
    ),
)

PEOPLE: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "relation",
        r"\b<MY> <AGED>(?P<relation><KIN>),? (?P<object><FIRST>)",
        "has_{relation}",
        "{speaker} has a {relation} named {object}",
        0.85,
        anywhere=True,
    ),
    ExtractionRule(
        "named relation",
        r"\b<MY> <AGED>(?P<relation><KIN>)(?:'s name is| is called| is named|'s called|'s named| named| called) "
        r"(?P<object><FIRST>)",
        "has_{relation}",
        "{speaker} has a {relation} named {object}",
        0.95,
        anywhere=True,
    ),
    ExtractionRule(
        "has named",
        r"<WE>(?: have|'ve got| have got) an? <AGED>(?P<relation><KIN>)(?:,? (?:named|called)|,? whose name is) "
        r"(?P<object><FIRST>)",
        "has_{relation}",
        "{speaker} has a {relation} named {object}",
        0.95,
    ),
    ExtractionRule(
        "birthday of",
        r"<MY> <AGED>(?P<relation><KIN>) (?P<who><FIRST>)'s birthday is (?:on )?(?P<object><DATE>)",
        "birthday_of_{who}",
        "The birthday of {who}, {speaker}'s {relation}, is {object}",
        0.9,
        functional=True,
    ),
    ExtractionRule(
        "married to",
        r"<IM> married to (?P<object><FIRST>)",
        "has_spouse",
        "{speaker} is married to {object}",
        0.95,
    ),
    ExtractionRule(
        "marital status",
        r"<IM> (?:happily |now |still |recently )?"
        r"(?P<object>(?:married|single|divorced|widowed|engaged(?! (?:\w+ )?with\b))<STOP>|married(?= to <FIRST>))",
        "marital_status",
        "{speaker} is {object}",
        0.85,
    ),
    ExtractionRule(
        "got married",
        r"<I>(?:'ve| have)? (?:(?:just|recently|finally) )?(?:got|gotten) (?P<object>married|divorced)"
        r"(?: (?:to|in) <PLACE>)?(?= (?:last|this|yesterday|today)\b)",
        "marital_status",
        "{speaker} is {object}",
        0.85,
    ),
    ExtractionRule(
        "job of a relation",
        r"<MY> <AGED>(?P<relation><KIN>)(?:,? <FIRST>,?)? (?:is|works as) (?P<article>an?) "
        r"(?P<object>(?:(?!<RATED>\b)[a-z][\w-]* ){0,2}?(?:<JOB>|<PURSUIT>))<END>",
        "{relation}_works_as",
        "{speaker}'s {relation} is {article} {object}",
        0.8,
    ),
    ExtractionRule(
        "anniversary",
        r"(?:[Mm]y|[Oo]ur) (?:wedding )?anniversary(?: is|'s)(?: on)? (?P<object><DATE>)",
        "anniversary",
        "{speaker}'s wedding anniversary is {object}",
        0.9,
    ),
    ExtractionRule(
        "has some",
        r"<WE>(?: have|'ve got| have got) (?P<object>(?:an?|one|two|three|four|five|six|seven|\d{1,2}) "
        r"(?:(?!(?:cool|hot|stuffed|toy)\b)[a-z]+ ){0,2}?<COUNTED>)<STOP>",
        "has",
        "{speaker} has {object}",
        0.85,
    ),
    ExtractionRule(
        "owns",
        r"<I> (?:also )?(?:own|drive|ride) (?P<object>an? (?:(?:[a-z]+ ){0,2}<POSSESSION>|"
        r"(?:[a-z]+ )?[A-Z][\w-]*(?: [A-Z0-9][\w-]*){0,3}))<END>",
        "owns",
        "{speaker} has {object}",
        0.85,
    ),
    ExtractionRule(
        "speaks",
        r"<I> (?:also )?speak (?:(?:fluent|native|some|a little|good) )?"
        r"(?P<object><LANGUAGE>(?:(?:,? and |, )<LANGUAGE>)*)(?: (?:fluently|natively|well))?<END>",
        "speaks",
        "{speaker} speaks {object}",
        0.9,
    ),
    ExtractionRule(
        "learns a language",
        r"<IM> <ADV>learning (?P<object><LANGUAGE>(?:(?:,? and |, )<LANGUAGE>)*)<END>",
        "learns",
        "{speaker} is learning {object}",
        0.85,
    ),
)
