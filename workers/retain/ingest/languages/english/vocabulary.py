"""The parts of rules' patterns, as regular expressions without capturing groups."""

from __future__ import annotations

from collections.abc import Mapping

_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t|tember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DATED = rf"(?:{_DAY}|{_MONTH}|Christmas|Easter)"
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_WORD = r"[A-Z][\w'-]*(?<!'s)"
_GIVEN = r"[A-Z][a-zà-ÿ]+(?:-[A-Z][a-zà-ÿ]+)?"
_IN_NAMES = "(?:(?:van|von|der|de|di|da|del|bin|al|la) )*"

PARTS: Mapping[str, str] = {
    "I": "(?:I|i)",
    "IM": "(?:I'm|I am|i'm|i am|Im)",
    "WE": "(?:I|i|[Ww]e)",
    "WERE": "(?:I'm|I am|[Ww]e're|[Ww]e are)",
    "MY": "(?:[Mm]y)",
    "PLEASE": "(?:[Pp]lease,? |[Yy]ou can (?:always |just )?|[Yy]ou may |[Jj]ust |[Ff]eel free to )?",
    "ADV": (
        "(?:(?:currently|now|still|also|really|actually|just|absolutely|totally|truly|definitely|usually|generally|always|"
        "do|both|personally|particularly|especially|recently|mostly|mainly|normally|typically|simply|primarily) )*"
    ),
    "NAME": rf"(?!(?:I|{_DATED}|ASAP|Back|Later|Sir)\b){_WORD}(?: {_IN_NAMES}(?!I\b){_WORD}){{0,3}}",
    "FIRST": (
        rf"(?!(?:I|It|Its|He|She|They|We|You|And|But|So|Then|That|This|Who|{_DATED}|Mr|Mrs|Ms|Dr|OK|TV)\b){_GIVEN}"
        rf"(?: (?!(?:I|{_DATED})\b){_GIVEN})?(?![\w-])"
    ),
    "PLACE": (
        r"(?:the )?(?:(?:(?:north|south)(?:ern|east(?:ern)?|west(?:ern)?)?|east(?:ern)?|west(?:ern)?|central|upstate) )?"
        rf"(?!(?:I|{_DATED})\b)[A-Z][\w.'-]*"
        r"(?:,? (?:(?:of|the|de|la|del|upon|am) )*(?!I\b)[A-Z][\w.'-]*){0,4}(?<![.])(?: (?:area|county|region|valley)\b)?"
    ),
    "ORG": (
        rf"(?:the )?(?!(?:I|{_DATED})\b)[A-Z0-9][\w&.'-]*"
        r"(?: (?:(?:of|and|&|the|for) )*(?!I\b)[A-Z0-9][\w&.'-]*){0,5}(?<![.])"
    ),
    # What may follow: the end of the clause, or words that do not belong to a name.
    "END": (
        r"(?=\s*(?:$|[.,;:!)(]|-\s|\b(?:and|but|with|for|since|now|because|so|where|which|near|in|at|as|on|from|after|"
        r"by|to|until|though|too|again|permanently|currently|full|part|who|during|this|last|next|all|most|about|around|"
        r"these|right|\d+)\b))"
    ),
    "STOP": r"(?=\s*(?:$|[.,;!)(]|-\s|\b(?:and|but|now|with|so|again)\b))",
    "EMAIL": r"[A-Za-z0-9][\w.+-]*@[\w-]+(?:\.[\w-]+)+",
    "PHONE": r"\+?\(?\d(?:[\s().-]{0,2}\d){6,14}",
    "MONTH": _MONTH,
    "DATED": _DATED,
    "DATE": (
        rf"(?:(?:the )?{_NUMBER}(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH} (?:the )?{_NUMBER}(?:,? \d{{4}})?|"
        r"\d{4}-\d\d-\d\d|\d{1,2}[/.]\d{1,2}[/.]\d{2,4})"
    ),
    "DUE": (
        r"(?:\b(?:by|before|until|on|this|next|at) (?:(?:the|this|next|coming) )*"
        rf"(?:end of|{_DATED}|tomorrow|tonight|noon|midnight|week|month|year|morning|afternoon|evening|quarter|\d)"
        r"|\b(?:tomorrow|tonight)\b)"
    ),
    "KIN": (
        "(?:wife|husband|spouse|partner|fiancée?|girlfriend|boyfriend|daughter|son|child|baby|mother|mom|mum|father|dad|"
        "sister|brother|grandmother|grandma|grandfather|grandpa|granddaughter|grandson|aunt|uncle|cousin|niece|nephew|"
        "stepdaughter|stepson|ex-wife|ex-husband|friend|roommate|flatmate|neighbou?r|boss|manager|colleague|co-?worker|"
        "therapist|doctor|dentist|teacher|landlord|dog|puppy|cat|kitten|horse|rabbit|hamster|parrot)"
    ),
    "AGED": (
        r"(?:(?:younger|youngest|older|oldest|elder|eldest|little|big|twin|best|good|close|dear|new|lovely|newborn|"
        r"\d+[- ](?:year|month)[- ]old) )*"
    ),
    "COUNTED": (
        "(?:dogs?|puppy|puppies|cats?|kittens?|kids?|child|children|daughters?|sons?|brothers?|sisters?|siblings?|"
        "grandchild|grandchildren|horses?|rabbits?|hamsters?|parrots?|goldfish|chickens|nephews?|nieces?|twins)"
    ),
    "POSSESSION": (
        "(?:house|flat|apartment|car|motorcycle|motorbike|bike|bicycle|boat|sailboat|van|truck|camper|business|bakery|"
        "restaurant|shop|café|farm|company|piano|guitar|violin|cottage|cabin)"
    ),
    "JOB": (
        "(?:accountant|analyst|architect|attorney|baker|barista|biologist|bus driver|carpenter|cashier|chef|chemist|"
        "consultant|dentist|designer|developer|director|doctor|driver|economist|editor|electrician|engineer|farmer|"
        "firefighter|florist|freelancer|geologist|hairdresser|historian|journalist|judge|lawyer|lecturer|librarian|"
        "manager|mathematician|mechanic|midwife|nurse|optician|paramedic|pharmacist|physicist|physiotherapist|pilot|"
        "plumber|police officer|postdoc|professor|programmer|psychologist|realtor|recruiter|researcher|salesperson|"
        "scientist|secretary|social worker|soldier|surgeon|teacher|technician|therapist|translator|tutor|vet|"
        "veterinarian|waiter|waitress|welder)"
    ),
    # What somebody may be next to a job.
    "PURSUIT": (
        "(?:actor|actress|artist|author|cellist|composer|cook|cyclist|dancer|drummer|gamer|gardener|guitarist|musician|"
        "painter|photographer|pianist|poet|runner|sailor|singer|student|swimmer|violinist|volunteer|writer)"
    ),
    "LANGUAGE": (
        "(?i:English|French|German|Spanish|Italian|Dutch|Portuguese|Polish|Russian|Ukrainian|Mandarin|Cantonese|Chinese|"
        "Japanese|Korean|Arabic|Hebrew|Turkish|Greek|Swedish|Norwegian|Danish|Finnish|Czech|Hungarian|Romanian|Hindi|"
        "Urdu|Bengali|Tamil|Swahili|Vietnamese|Thai|Catalan|Basque|Welsh|Irish)"
    ),
    # Before a job these say how good or how real somebody is at it, and not what they do for a living.
    "RATED": (
        "(?:bit|big|huge|good|bad|terrible|great|lousy|better|worse|former|future|decent|mediocre|slow|fast|quick|avid|"
        "broke|poor|single|lone|super|really|very|pretty|fairly|so|picky|careful|lazy|natural|born|aspiring|wannabe|"
        "hopeful|amateur|hobby|casual|keen|horrible|awful|excellent|amazing|awesome|wonderful|visual|average|true|real|"
        "perfect|typical|fellow)"
    ),
    "WORKPLACE": (
        "(?:agency|bakery|bank|bar|bookstore|brewery|caf[eé]|call cent(?:er|re)|charity|clinic|coffee shop|college|"
        "company|consultancy|daycare|factory|farm|firm|gym|hospital|hotel|kindergarten|lab|laboratory|law firm|library|"
        "museum|newspaper|non-?profit|nursery|pharmacy|preschool|pub|publisher|restaurant|salon|school|shop|spa|"
        "start-?up|store|studio|supermarket|theat(?:er|re)|university|warehouse)"
    ),
    "FIELD": (
        "(?:accounting|advertising|agriculture|aviation|banking|biotech|construction|consulting|"
        "customer (?:service|support)|(?:cyber)?security|data science|education|fashion|finance|government|health ?care|"
        "hospitality|HR|human resources|[Ii]nformation [Tt]echnology|insurance|IT|journalism|law enforcement|logistics|"
        "machine learning|manufacturing|marketing|pharma|PR|public relations|publishing|real estate|retail|sales|"
        "software|tech|tourism|[a-z]+ (?:development|engineering|design|research|management))"
    ),
    "PLAYED": (
        "(?:accordion|badminton|banjo|baseball|basketball|bass(?: guitar)?|bassoon|bridge|cello|chess|clarinet|cricket|"
        "drums|field hockey|flute|football|golf|guitar|handball|harmonica|harp|hockey|ice hockey|keyboard|lacrosse|"
        "mandolin|oboe|organ|padel|percussion|piano|pickleball|ping pong|poker|rugby|sax(?:ophone)?|soccer|softball|"
        "squash|table tennis|tennis|trombone|trumpet|tuba|ukulele|ultimate(?: frisbee)?|video games|viola|violin|"
        "volleyball|water polo)"
    ),
    # What a person can instruct an assistant to do.
    "DO": (
        "(?:add|address|answer|ask|assume|avoid|book|buy|call|change|charge|check|cite|confirm|consult|contact|delete|"
        "deliver|discuss|email|end|escalate|explain|format|give(?! up)|greet|include|inform|invite|keep|let|list|make|"
        "mention|message|name|notify|offer|order|pay|phone|propose|provide|put|quote|recommend|refer|refund|remind|"
        "reply|reserve|"
        "respond|round|schedule|send|share|ship|show|sign|speak|start|suggest|summari[sz]e|talk|tell|text|translate|"
        "use|verify|wait|write)"
    ),
}
