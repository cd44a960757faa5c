"""How people speak about themselves in English."""

from __future__ import annotations

from retain.ingest.languages.language import Expression, Speech

_ASKING = Expression(
    r"(?:(?:and|but|so|or|ok|okay|hey|hi|well),? )*(?:who|whom|whose|what|when|where|why|how|which|do|does|did|is|are|am|"
    r"was|were|can|could|will|would|shall|should|have you|has|had|may|might)\b"
)
_HEDGED = Expression(
    r"\b(?:if|unless|whether|would|wouldn't|could|couldn't|might|maybe|perhaps|probably|possibly|wish|wished|hope|"
    r"suppose|supposing|imagine|pretend|pretending|hypothetically|assume|assuming|let's say|guess|doubt|kidding|joking|"
    r"joke|sarcasm|dreamt|dreamed|what if|as though|in case|not sure|unsure|supposedly|allegedly|fictional|"
    r"(?<!\bI )(?<!\bwe )used to|character|lyrics|novel|role-?play|for example|e\.g|for instance|template|"
    r"placeholder)\b|(?-i:\b(?:may|MAY)\b)(?! \d)|\bI'd\b"
)
"""\"May\" is a month."""
_PERSONAL = Expression(r"\b(?:I|I'm|Im|my|me|we|our|always|never|ever|from now on|from here on|going forward|future)\b")
"""Words without which nobody speaks about themselves or what they want: most sentences have none of them."""
_REPORTED = Expression(
    r"\b(?:goes|went)[,:]|\b(?:was|were) (?:all |just )?like(?:,| (?:I|my|we)\b)|(?:\bis|\bare|'s|'re) (?:all |just )?like,|"
    r"\b(?:said|says|saying|told (?:me|him|her|us|them)|tells|asked|asks|wrote|writes|claims?|claimed|according to|"
    r"quot(?:e|es|ed|ing)|thinks|thought|believes|believed|heard|overheard|reads|replied|replies|answered|announced|"
    r"insists|insisted)\b"
)
_NEGATED = Expression(
    r"\b(?:not|never|no|nor|neither|none|nobody|nothing|nowhere|hardly|barely|without|cannot|cant|dont|doesnt|didnt|"
    r"isnt|wasnt|wont)\b|n't\b"
)
_CONJUNCTION = "(?:and|but|so|because|since|although|though|while|whereas|or|yet|plus|also|as)"
_CLAUSE = Expression(
    rf"(?:\s*[,;:]|\s+-)?\s+(?:{_CONJUNCTION} )*(?=(?:I|I'm|I've|my|we|we're|we've|our|he|she|they|you|it|it's|there|please|"
    r"remind me|call me|from now on|going forward)\b)"
)
_JOINING = Expression(rf"[,;:]|\s-\s|\b{_CONJUNCTION}\s*$")
_CONTRAST = Expression(
    r"(?:\s*[,;]\s*(?:(?:and|but) )?|\s+-+\s+|\s+(?:and|but) )(?P<other>not "
    r"(?!(?:(?:in|at|for|from|as|with|to) )?(?:all|always|any|any ?more|by|certain|currently|even|ever|exactly|far|if|just|"
    r"lately|least|less|like|long|many|more|most|much|necessarily|now|often|on|one|only|quite|real|really|right|since|so|"
    r"sure|that|then|these|this|today|too|true|until|usually|very|when|where|which|while|who|yet|your|"
    r"(?:a|an|the) (?:bit|chance|hundred|least|little|lot|million|moment|slightest|thousand))\b)"
    r"[^\s,;:!?]+(?: [^\s,;:!?]+){0,4})[\s.!\u2026-]*$"
)
"""The end of a piece that says what is not so instead: ", not Paris". Without what denies all of it: ", not really"."""
_LEAD = Expression(
    r"(?:(?:hi|hello|hey|hiya|well|yes|yeah|yep|yup|no|nope|ok|okay|oh|ah|so|and|but|also|plus|actually|btw|by the way|"
    r"anyway|honestly|fyi|right|sure|great|cool|nice|thanks|thank you|sorry|please note(?: that)?|note that|"
    r"I meant(?: to say)?(?: that)?|I mean(?= ?,)|just so you know|as you know|as I told you|remember that|"
    r"good (?:morning|afternoon|evening)|dear \w+|"
    r"nice to meet you|(?:there|everyone|all|again|see|look|listen)(?=[,.!:]))\b[\s,.!:;-]*)+"
)

SPEECH = Speech(
    personal=_PERSONAL,
    asking=_ASKING,
    hedged=_HEDGED,
    reported=_REPORTED,
    negated=_NEGATED,
    lead=_LEAD,
    new_subject=_CLAUSE,
    joined=_JOINING,
    contrast=_CONTRAST,
)
