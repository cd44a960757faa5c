"""Rules for who somebody is: names, places, dates, contact details."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "name",
        r"<MY> (?:full |real |first |given )?name(?: is|'s) (?P<object><NAME>)<END>",
        "name",
        "{speaker}'s name is {object}",
        0.95,
    ),
    ExtractionRule(
        "called by others",
        r"(?:<IM> called|<I> go by|(?:[Mm]y )?(?:[Ff]riends|[Pp]eople|[Ee]veryone|[Ee]verybody) calls? me) "
        r"(?P<object><NAME>)<STOP>",
        "preferred_name",
        "{speaker} is called {object}",
        0.85,
    ),
    ExtractionRule(
        "call me",
        r"<PLEASE>[Cc]all me (?P<object><NAME>)<STOP>",
        "preferred_name",
        "{speaker} wants to be called {object}",
        0.9,
    ),
    ExtractionRule(
        "pronouns",
        r"<MY> pronouns are (?P<object>\w+/\w+(?:/\w+)?)",
        "pronouns",
        "{speaker}'s pronouns are {object}",
        0.95,
    ),
    ExtractionRule(
        "age",
        r"<IM> (?:now )?(?P<object>\d{1,3}) (?:years old|years of age|yo\b|y/o)",
        "age",
        "{speaker} is {object} years old",
        0.85,
    ),
    ExtractionRule(
        "age without years",
        r"(?:<IM> (?:only |just |now )?|<I>(?:'ve| have)?(?: just| recently| finally) turned )"
        r"(?P<object>1[3-9]|[2-9]\d)(?:<STOP>|(?= (?:today|yesterday|last|this)\b))",
        "age",
        "{speaker} is {object} years old",
        0.75,
    ),
    ExtractionRule(
        "lives in",
        r"(?:<WE> <ADV>live|<WERE> <ADV>(?:living|based)) in (?P<object><PLACE>)<END>",
        "lives_in",
        "{speaker} lives in {object}",
        0.9,
    ),
    ExtractionRule(
        "moved to",
        r"<WE>(?: (?:just|recently|now)|'ve(?: just| recently)?| have(?: just| recently)?) (?:moved|relocated) (?:back )?to "
        r"(?P<object><PLACE>)<END>",
        "lives_in",
        "{speaker} lives in {object}",
        0.85,
    ),
    ExtractionRule(
        "moved from one place to another",
        r"<WE>(?:'ve| have)?(?: just| recently| now)? (?:moved|relocated) from <PLACE> to (?P<object><PLACE>)<END>",
        "lives_in",
        "{speaker} lives in {object}",
        0.85,
    ),
    ExtractionRule(
        "moved there at some time",
        r"<WE> moved to (?P<object><PLACE>)<STOP>",
        "lives_in",
        "{speaker} lives in {object}",
        0.75,
    ),
    ExtractionRule(
        "comes from",
        r"(?:<IM> (?:originally )?from|<I> (?:originally )?come from|<MY> home ?town is) (?P<object><PLACE>)<STOP>",
        "comes_from",
        "{speaker} comes from {object}",
        0.8,
    ),
    ExtractionRule(
        "grew up in",
        r"<WE> grew up in (?P<object><PLACE>)<END>",
        "grew_up_in",
        "{speaker} grew up in {object}",
        0.85,
    ),
    ExtractionRule(
        "born in a place",
        r"<I> was born in (?P<object><PLACE>)<END>",
        "born_in",
        "{speaker} was born in {object}",
        0.9,
    ),
    ExtractionRule(
        "birthday",
        r"(?:<MY> birthday(?: is|'s)(?: on)?|<I> was born on) (?P<object><DATE>)",
        "birthday",
        "{speaker}'s birthday is {object}",
        0.95,
    ),
    ExtractionRule(
        "born in a year",
        r"<I> was born in (?P<object>(?:19|20)\d\d)\b",
        "birth_year",
        "{speaker} was born in {object}",
        0.95,
    ),
    ExtractionRule(
        "e-mail",
        r"<MY> (?:(?:new|personal|private|home|current|main) )?e-?mail(?: address)?(?: is|'s|:) (?P<object><EMAIL>)",
        "email",
        "{speaker}'s e-mail address is {object}",
        0.95,
    ),
    ExtractionRule(
        "work e-mail",
        r"<MY> (?:new )?(?:work|business|office) e-?mail(?: address)?(?: is|'s|:) (?P<object><EMAIL>)",
        "work_email",
        "{speaker}'s work e-mail address is {object}",
        0.95,
    ),
    ExtractionRule(
        "write to me",
        r"<PLEASE>(?:[Rr]each|[Ee]-?mail|[Cc]ontact|[Ww]rite(?: to)?|[Rr]eply to) me (?:at|on|under|via) "
        r"(?P<object><EMAIL>)",
        "email",
        "{speaker}'s e-mail address is {object}",
        0.85,
    ),
    ExtractionRule(
        "phone",
        r"<MY> (?:(?:new|personal|private|home|mobile|cell|current|phone|telephone) )*(?:phone|telephone|cell|mobile|number)"
        r"(?: is|'s|:) (?P<object><PHONE>)",
        "phone",
        "{speaker}'s phone number is {object}",
        0.95,
    ),
    ExtractionRule(
        "work phone",
        r"<MY> (?:new )?(?:work|business|office) (?:phone(?: number)?|number)(?: is|'s|:) (?P<object><PHONE>)",
        "work_phone",
        "{speaker}'s work phone number is {object}",
        0.95,
    ),
    ExtractionRule(
        "call me at",
        r"<PLEASE>(?:[Rr]each|[Cc]all|[Tt]ext|[Rr]ing|[Pp]hone) me (?:at|on|under) (?P<object><PHONE>)",
        "phone",
        "{speaker}'s phone number is {object}",
        0.85,
    ),
    ExtractionRule(
        "address",
        r"<MY> (?:(?:new|home|postal|mailing|street|current|shipping|delivery) )*address(?: is|'s|:) "
        r"(?P<object>(?=.*\d)(?!.*@)[A-Z0-9].{5,120})$",
        "address",
        "{speaker}'s address is {object}",
        0.85,
    ),
)
