"""Where the things that people name in English end, and which words name nothing."""

from __future__ import annotations

from retain.ingest.languages.language import Expression, Things

_THING_ENDS = Expression(
    r"\s*(?:[;:()]|\s-\s|(?:\b(?:even|just|mainly|mostly|only|simply|purely|partly) )*\b(?:"
    r"because|since|so|but|when|whenever|while|as|if|that(?! (?:much|often)\b)(?=(?:'|\s+)\w)|which|who|where|though|"
    r"although|except|especially|until|before|after|(?:(?:rather|other|more|less|better) )?than|thanks)\b).*$"
)
"""Where something else begins, with the words of degree that belong to it: "rather than", "even though"."""
_JOINED_DEED = Expression(
    r"(?<!every now)(?:,? and|,) (?=(?:(?:I|you|he|she|we|they|it|my|your|his|her|our|their|am|is|are|was|were|have|has|"
    r"had|do|did|don't|can|will|then|also|not|never|always)\b|"
    r"\w+ (?:it|them|him|her|me|you|us|a lot|daily|often|every|my|the)\b|(?:the|a|an) \w+ (?:is|are|was|were)\b)).*$"
)
_TAIL = Expression(
    r"(?:,? (?:too|as well|a (?:lot|bit|little)|(?:(?:all )?that |so |very |way too )?much|"
    r"the most|the best|best|(?<!be )(?<!get )better|rather|most of all|more than anything|more|these days|lately|though|"
    r"tho|anyways?|(?<!ing )myself|in general|overall|for sure|please|thank you|to be honest|"
    r"I (?:do )?have to (?:admit|say)|actually|really|at all|any ?more|either|(?:right )?now|sometimes|"
    r"(?:all|most) of the time|all the time|from time to time|(?:every )?(?:now and then|once in a while)|"
    r"(?:ha){2,}h?|lol|lmao|tbh|imo|btw|xd))+$"
)
"""Words after a thing that say how much, how often or how seriously: they are not part of it."""
_DEED_ENDS = Expression(r"(?:,? (?:so|but|because|since) |,? (?:please|thanks|thank you|ok|okay)$).*$")
_UNFINISHED = Expression(r"(?:^|\s)(?:to|of|for|with|in|at|on|by|and|or|the|a|an|my|from|about|every|very|like|not)$")
_NO_THING = Expression(
    r"(?:and|or|but|like|don't|dont|it|that|this|these|those|them|him|her|us|you|me|your|his|their|its|one|ones|both|all|"
    r"everything|anything|something|nothing|some|how|what|when|where|why|who|whatever|either|being told|"
    r"to (?:say|see|hear|know|think|be honest|bother|admit|ask|thank)|"
    r"(?:a|an) (?:idea|way|look|sound|fact|thought|part|thing))\b"
)
_DEFINITE = Expression(
    r"(?-i:[Tt]he (?!(?:sea|seaside|beach|outdoors|mountains|ocean|theatre|theater|opera|rain|snow|piano|violin|guitar|"
    r"(?:colou?r|taste|smell|sound) of)\b)[a-z])"
)
_POINTING = Expression(
    r"\b(?:you|your|yours|it|its|this|that|these|those|them|him|her|us|me|myself|here|there|one|ones)\b"
)

THINGS = Things(
    ends=(_THING_ENDS, _JOINED_DEED, _TAIL),
    none=_NO_THING,
    definite=_DEFINITE,
    pointing=_POINTING,
    unfinished=_UNFINISHED,
    deed_ends=_DEED_ENDS,
)
