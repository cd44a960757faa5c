"""Rules for what somebody does: work, studies, and what they play and use."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_NO_SUBJECT = (
    r"(?!(?:for|in|at|on|abroad|hard|the|to|it|with|from|how|all|every|this|that|a|an|and|my|so|better|best|more|less|"
    r"way|here|there|alone|together|too|right|now|not|still|undecided|undeclared|pending|open|gonna|going|what|when|"
    r"like|pretty|very|super|really|awesome|fun|great|cool|easy|tough|kind|just|only)\b)"
)
_SUBJECT_WORD = (
    r"(?!(?:for|in|at|on|with|and|to|all|every|this|right|now|too|actually|here|there|myself|emph\w+|because|so)\b)"
)

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "works at",
        r"(?:<I> <ADV>work|<IM> <ADV>(?:working|employed)) (?:at|for) (?P<object><ORG>)<END>",
        "works_at",
        "{speaker} works at {object}",
        0.9,
    ),
    ExtractionRule(
        "started at",
        r"(?:I|I've|I have) (?:just |recently )?(?:joined|started (?:working )?at|(?:got|accepted) (?:a|the) job at) "
        r"(?P<object><ORG>)<STOP>",
        "works_at",
        "{speaker} works at {object}",
        0.75,
    ),
    ExtractionRule(
        "employer",
        r"<MY> (?:current |new )?(?:employer|company) is (?:called )?(?P<object><ORG>)<STOP>",
        "works_at",
        "{speaker} works at {object}",
        0.85,
    ),
    ExtractionRule(
        "works as",
        r"<I> <ADV>work as (?:an? |the )?(?P<object>(?!(?:hard|much|well|long|fast|little|often|soon|if|one|part|usual)\b)"
        r"[A-Za-z][\w-]*(?: (?!(?:and|but|at|for|in|on|with|so)\b)[A-Za-z][\w-]*){0,3})<END>",
        "works_as",
        "{speaker}'s job is {object}",
        0.9,
    ),
    ExtractionRule(
        "job",
        r"<IM> <ADV>an? (?P<object>(?:(?!<RATED>\b)[a-z][\w-]* ){0,3}?<JOB>)<END>",
        "works_as",
        "{speaker}'s job is {object}",
        0.85,
    ),
    ExtractionRule(
        "pursuit",
        r"<IM> <ADV>(?P<article>an?) (?P<object>(?:(?!<RATED>\b)[a-z][\w-]* ){0,3}?<PURSUIT>)<END>",
        "is",
        "{speaker} is {article} {object}",
        0.85,
    ),
    ExtractionRule(
        "office",
        r"<IM> <ADV>(?:the |an? )?(?P<object>(?:CEO|CTO|CFO|COO|CMO|CPO|(?:co-?)?founder|owner|head|director|VP|"
        r"vice president|managing director|president|principal)(?: of [a-z]+(?: [a-z]+)?)? (?:of|at) <ORG>)<END>",
        "job_title",
        "{speaker} is {object}",
        0.85,
    ),
    ExtractionRule(
        "workplace",
        r"(?:<I> <ADV>work|<IM> <ADV>working) (?:at|for) (?P<object>an? (?:[a-z][\w-]* ){0,3}?<WORKPLACE>)<END>",
        "works_at",
        "{speaker} works at {object}",
        0.8,
    ),
    ExtractionRule(
        "field",
        r"(?:<I> <ADV>work|<IM> <ADV>working) in (?P<object>(?:the )?(?:<FIELD>|(?:[A-Za-z][\w-]* ){1,2}"
        r"(?:industry|sector|business|department)))<END>",
        "works_in",
        "{speaker} works in {object}",
        0.85,
    ),
    ExtractionRule(
        "studies",
        r"(?:<IM> <ADV>(?:studying|majoring in) |<I> <ADV>(?:study|major in) |"
        r"<MY> major(?: is|'s) (?:actually |currently )?)"
        rf"(?P<object>{_NO_SUBJECT}(?!\w+(?:al|ed|ary) and [a-z])[A-Za-z][\w/-]*"
        rf"(?: {_SUBJECT_WORD}[A-Za-z][\w/-]*){{0,2}}(?: and [A-Z][\w/-]*(?: [A-Z][\w/-]*){{0,2}})?)"
        r"(?:<END>|(?= (?:here|there|actually|essentially|myself|emph\w+)\b))",
        "studies",
        "{speaker} studies {object}",
        0.8,
    ),
    ExtractionRule(
        "plays",
        r"<I> <ADV>(?:play|practi[cs]e) (?:the )?(?P<object><PLAYED>(?:(?:,? and |, ?)(?:the )?<PLAYED>)*)<END>",
        "plays",
        "{speaker} plays {object}",
        0.85,
    ),
    ExtractionRule(
        "uses",
        r"(?:<I> <ADV>use|<IM> <ADV>using) "
        r"(?P<object>(?!(?:It|He|She|They|This|That|These|My|Your|<LANGUAGE>|<DATED>s?)\b)(?=[A-Z])<ORG>)<END>",
        "uses",
        "{speaker} uses {object}",
        0.75,
    ),
)
