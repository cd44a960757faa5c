"""The facts that the rules extract from a message, and above all what they ignore."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.ingest.extraction import ExtractedFact, SourceMessage
from retain.ingest.extractors.rule_extractor import RuleExtractor, facts_of
from retain.ingest.languages.english import ENGLISH
from retain.ingest.languages.rule import ExtractionRule
from retain.ingest.speech.sentences import MAX_SENTENCE

FACTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Names.
    ("My name is Anna Schmidt.", ("name=Anna Schmidt",)),
    ("Hi, my name's Anna.", ("name=Anna",)),
    ("my name is Ludwig van Beethoven", ("name=Ludwig van Beethoven",)),
    ("Please call me Ann.", ("preferred_name=Ann",)),
    ("Everyone calls me Lex.", ("preferred_name=Lex",)),
    ("My pronouns are they/them.", ("pronouns=they/them",)),
    ("I'm 34 years old.", ("age=34",)),
    # Places.
    ("I live in Paris.", ("lives_in=Paris",)),
    ("i live in Berlin", ("lives_in=Berlin",)),
    ("I currently live in New York, NY.", ("lives_in=New York, NY",)),
    ("We live in the Netherlands now.", ("lives_in=the Netherlands",)),
    ("I'm based in St. Louis.", ("lives_in=St. Louis",)),
    ("I've just moved to San Francisco for a new job.", ("lives_in=San Francisco",)),
    ("Hello again. I moved to Lyon.", ("lives_in=Lyon",)),
    ("I\u2019m originally from Lyon.", ("comes_from=Lyon",)),
    ("I was born in Porto and grew up in Lisbon.", ("born_in=Porto",)),
    ("I grew up in Cape Town.", ("grew_up_in:cape_town=Cape Town",)),
    # Work.
    ("I work at Acme Corp.", ("works_at=Acme Corp",)),
    ("I work for Johnson & Johnson in Basel.", ("works_at=Johnson & Johnson",)),
    ("I just joined Northwind.", ("works_at=Northwind",)),
    ("I work as a software engineer at Google.", ("works_as=software engineer",)),
    ("I'm a nurse.", ("works_as=nurse",)),
    ("I'm the CTO of Initech.", ("job_title=CTO of Initech",)),
    ("I'm studying marine biology in Kiel.", ("studies:marine_biology=marine biology",)),
    ("I'm a student, and I work as a baker.", ("is:student=student", "works_as=baker")),
    ("I am a competitive dancer.", ("is:competitive_dancer=competitive dancer",)),
    ("I work as a Research Assistant on campus.", ("works_as=Research Assistant",)),
    ("I work at a call center.", ("works_at=a call center",)),
    ("I'm working for a pricing analytics company in Oslo.", ("works_at=a pricing analytics company",)),
    ("I work in the food industry.", ("works_in:the_food_industry=the food industry",)),
    ("I work in machine learning.", ("works_in:machine_learning=machine learning",)),
    ("My mom is a registered nurse.", ("mom_works_as:registered_nurse=registered nurse",)),
    ("My brother Tom is an engineer.", ("brother_works_as:engineer=engineer", "has_brother:tom=Tom")),
    ("I'm majoring in Spanish.", ("studies:spanish=Spanish",)),
    ("My major is actually exercise science right now.", ("studies:exercise_science=exercise science",)),
    ("I study law here in Kiel.", ("studies:law=law",)),
    ("My major is Exercise and Wellness.", ("studies:exercise_and_wellness=Exercise and Wellness",)),
    ("I'm learning Arabic right now.", ("learns:arabic=Arabic",)),
    ("I also play the piano and guitar.", ("plays:piano_and_guitar=piano and guitar",)),
    ("I use Ubuntu at home.", ("uses:ubuntu=Ubuntu",)),
    ("I am 21.", ("age=21",)),
    ("I just turned 40!", ("age=40",)),
    ("I'm from southern California.", ("comes_from=southern California",)),
    ("We live in the Dallas area.", ("lives_in=the Dallas area",)),
    ("I got married last August.", ("marital_status=married",)),
    ("i speak chinese fluently", ("speaks:chinese=chinese",)),
    # What belongs to the rest of the sentence is not part of the object.
    ("I prefer playing with people rather than alone.", ("prefers:playing_with_people=playing with people",)),
    ("I like guarding better than teaching.", ("likes:guarding=guarding",)),
    ("I like puns every now and then.", ("likes:puns=puns",)),
    ("I love swimming only when it is hot.", ("likes:swimming=swimming",)),
    ("I don't like creative writing all that much because I am slow.", ("dislikes:creative_writing=creative writing",)),
    ("I love road trips anyway hahaha", ("likes:road_trips=road trips",)),
    ("I love film scores, that's what I study.", ("likes:film_scores=film scores",)),
    ("My favorite food is definitely sushi.", ("favorite_food=sushi",)),
    ("My favorite movie ever is Jaws.", ("favorite_movie=Jaws",)),
    # Likes and dislikes.
    ("I like green tea.", ("likes:green_tea=green tea",)),
    ("I really love hiking and photography!", ("likes:hiking_and_photography=hiking and photography",)),
    ("I love tea and drink it daily.", ("likes:tea=tea",)),
    ("I love the Beatles, and I play in a band.", ("likes:the_beatles=the Beatles",)),
    ("I'm a big fan of science fiction.", ("likes:science_fiction=science fiction",)),
    ("I hate Mondays.", ("dislikes:mondays=Mondays",)),
    ("I don't like mushrooms.", ("dislikes:mushrooms=mushrooms",)),
    ("I can't stand loud music.", ("dislikes:loud_music=loud music",)),
    ("I'm not a fan of horror films.", ("dislikes:horror_films=horror films",)),
    ("I prefer tea over coffee.", ("prefers:tea_over_coffee=tea over coffee",)),
    ("I usually prefer window seats.", ("prefers:window_seats=window seats",)),
    ("My favourite color is dark green.", ("favorite_color=dark green",)),
    ("My favourite colour is red.", ("favorite_color=red",)),
    ("I'm allergic to peanuts and shellfish.", ("allergic_to:peanuts_and_shellfish=peanuts and shellfish",)),
    ("I have a severe nut allergy.", ("allergic_to:nut=nut",)),
    ("I'm lactose intolerant.", ("has_condition:lactose_intolerant=lactose intolerant",)),
    ("I'm a vegetarian.", ("diet=vegetarian",)),
    ("I'm vegan again.", ("diet=vegan",)),
    ("I don't eat pork.", ("avoids:pork=pork",)),
    # Contact details.
    ("My email is anna.s@example.com.", ("email=anna.s@example.com",)),
    ("My work e-mail address is a.schmidt@acme.example", ("work_email=a.schmidt@acme.example",)),
    ("You can reach me at anna@example.org, thanks!", ("email=anna@example.org",)),
    ("My phone number is +49 170 1234567.", ("phone=+49 170 1234567",)),
    ("Call me at (555) 010-4477.", ("phone=(555) 010-4477",)),
    ("My address is 12 Main Street, Springfield.", ("address=12 Main Street, Springfield",)),
    # Days.
    ("My birthday is on May 5, 1990.", ("birthday=May 5, 1990",)),
    ("I was born on 1990-05-05.", ("birthday=1990-05-05",)),
    ("I was born in 1984.", ("birth_year=1984",)),
    ("Our anniversary is June 3.", ("anniversary=June 3",)),
    ("My daughter Mia's birthday is March 9.", ("has_daughter:mia=Mia", "birthday_of_mia=March 9")),
    # People and possessions.
    ("I went to the park with my daughter Anna yesterday.", ("has_daughter:anna=Anna",)),
    ("My dog's name is Rex.", ("has_dog:rex=Rex",)),
    ("We have a cat called Miso.", ("has_cat:miso=Miso",)),
    ("I have two kids.", ("has:two_kids=two kids",)),
    ("I'm married to Tom.", ("has_spouse:tom=Tom", "marital_status=married")),
    ("I'm divorced.", ("marital_status=divorced",)),
    ("I'm single again!", ("marital_status=single",)),
    ("I'm engaged.", ("marital_status=engaged",)),
    ("I drive a Tesla Model 3.", ("owns:a_tesla_model_3=a Tesla Model 3",)),
    ("I speak French and Dutch.", ("speaks:french_and_dutch=French and Dutch",)),
    # Tasks, plans, instructions.
    ("Remind me to call the dentist tomorrow.", ("task:to_call_the_dentist_tomorrow=to call the dentist tomorrow",)),
    ("Don't let me forget to water the plants.", ("task:to_water_the_plants=to water the plants",)),
    ("I need to finish the report by Friday.", ("task:finish_the_report_by_friday=finish the report by Friday",)),
    ("We're flying to Rome next week.", ("plans:flying_to_rome_next_week=flying to Rome next week",)),
    (
        "I have a dentist appointment on Monday at 3.",
        ("plans:a_dentist_appointment_on_monday_at_3=a dentist appointment on Monday at 3",),
    ),
    ("From now on, please answer in French.", ("instruction:answer_in_french=answer in French",)),
    ("Always use metric units.", ("instruction:always_use_metric_units=Always use metric units",)),
    (
        "Never call me before nine.",
        ("instruction:never_call_me_before_nine=Never call me before nine",),
    ),
    # Heads that introduce the writer's words.
    ("By the way: I moved to Oslo.", ("lives_in=Oslo",)),
    ("Update: I live in Oslo.", ("lives_in=Oslo",)),
    ("Quick Update: I live in Oslo.", ("lives_in=Oslo",)),
    ("PS: I'm vegetarian.", ("diet=vegetarian",)),
    ("One more thing: I live in Oslo.", ("lives_in=Oslo",)),
    ("Thanks!\nFull disclosure: I work at Acme.", ("works_at=Acme",)),
    # What the other rules leave.
    ("I go by Max.", ("preferred_name=Max",)),
    ("My employer is Initech.", ("works_at=Initech",)),
    ("My work phone is 030 1234567.", ("work_phone=030 1234567",)),
    ("I'm colourblind.", ("has_condition:colourblind=colourblind",)),
    ("Don't ever share my number.", ("instruction:don_t_ever_share_my_number=Don't ever share my number",)),
    ("In future, send the invoice to Tom.", ("instruction:send_the_invoice_to_tom=send the invoice to Tom",)),
    ("I'm flying to Lisbon tomorrow.", ("plans:flying_to_lisbon_tomorrow=flying to Lisbon tomorrow",)),
    ("We've got a son named Max.", ("has_son:max=Max",)),
    ("I like action films, the effects are great.", ("likes:action_films=action films",)),
    (
        "I'm flying to Oslo on Friday, so dinner is out.",
        ("plans:flying_to_oslo_on_friday=flying to Oslo on Friday",),
    ),
    # Several facts in one message.
    (
        "Hi! My name is Anna and I live in Paris, but I'm originally from Lyon.",
        ("name=Anna", "lives_in=Paris", "comes_from=Lyon"),
    ),
)

OVER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("I'm not vegetarian any more.", ("no_longer:diet:vegetarian=vegetarian",)),
    ("I'm not a vegetarian anymore, I eat meat now.", ("no_longer:diet:vegetarian=vegetarian",)),
    ("I am no longer vegetarian.", ("no_longer:diet:vegetarian=vegetarian",)),
    ("I no longer work at Acme.", ("no_longer:works_at:acme=Acme",)),
    ("I don't work at Acme anymore.", ("no_longer:works_at:acme=Acme",)),
    ("I no longer live in Rome.", ("no_longer:lives_in:rome=Rome",)),
    ("I don't live in Paris anymore.", ("no_longer:lives_in:paris=Paris",)),
    ("We moved out of Lyon.", ("no_longer:lives_in:lyon=Lyon",)),
    ("I moved away from Lyon last year.", ("no_longer:lives_in:lyon=Lyon",)),
    ("I just moved from Paris to Berlin.", ("lives_in=Berlin", "no_longer:lives_in:paris=Paris")),
    ("I stopped taking metformin.", ("no_longer:takes:metformin=metformin",)),
    ("I've stopped taking ibuprofen daily.", ("no_longer:takes:ibuprofen=ibuprofen",)),
    ("I quit smoking.", ("no_longer:smokes:smoker=smoker",)),
    ("I used to live in Madrid.", ("no_longer:lives_in:madrid=Madrid",)),
    ("I used to be a nurse.", ("no_longer:works_as:nurse=nurse",)),
    ("I used to work at Acme but I got fired.", ("no_longer:works_at:acme=Acme",)),
    ("I quit my job at Acme.", ("no_longer:works_at:acme=Acme",)),
    ("I left my position at Initech last month.", ("no_longer:works_at:initech=Initech",)),
    ("I was laid off from Globex.", ("no_longer:works_at:globex=Globex",)),
    ("I sold my boat.", ("no_longer:owns:a_boat=a boat",)),
    ("I don't own a car any more.", ("no_longer:owns:a_car=a car",)),
    ("I'm no longer married to Tom.", ("no_longer:has_spouse:tom=Tom", "no_longer:marital_status:married=married")),
    ("I'm no longer married.", ("no_longer:marital_status:married=married",)),
    ("My email is no longer anna@example.com.", ("no_longer:email:anna_example_com=anna@example.com",)),
    ("My name isn't Bob any more.", ("no_longer:name:bob=Bob",)),
    ("I no longer like jazz.", ("no_longer:likes:jazz=jazz",)),
    ("I don't like jazz any more.", ("dislikes:jazz=jazz",)),
    ("I used to love sushi.", ("no_longer:likes:sushi=sushi",)),
    ("I stopped drinking coffee.", ("avoids:coffee=coffee",)),
    ("I don't eat meat any more.", ("avoids:meat=meat",)),
    ("I stopped working at Acme.", ("no_longer:works_at:acme=Acme",)),
    ("I stopped being vegetarian.", ("no_longer:diet:vegetarian=vegetarian",)),
    ("I'm not vegetarian.", ("not:diet:vegetarian=vegetarian",)),
    ("I don't live in Paris.", ("not:lives_in:paris=Paris",)),
    ("My favourite color is no longer red.", ("no_longer:favorite_color:red=red",)),
    ("I no longer have a dog named Rex.", ("no_longer:has_dog:rex=Rex",)),
    ("We no longer have a cat called Miso.", ("no_longer:has_cat:miso=Miso",)),
    ("I'm not a doctor.", ("not:works_as:doctor=doctor",)),
    ("I do not work at Acme.", ("not:works_at:acme=Acme",)),
    ("I'm not a nurse.", ("not:works_as:nurse=nurse",)),
    ("My name is not Bob.", ("not:name:bob=Bob",)),
    ("My dad is no longer a programmer.", ("no_longer:dad_works_as:programmer=programmer",)),
    ("I used to play the violin.", ("no_longer:plays:violin=violin",)),
    ("My favorite artists are no longer Miro and Klee.", ("no_longer:favorite_artists:miro_and_klee=Miro and Klee",)),
    ("I take metformin daily.", ("takes:metformin=metformin",)),
    ("I'm a smoker.", ("smokes=smoker",)),
)
"""What has ended is `no_longer:`, what is denied `not:`."""

NOTHING: tuple[str, ...] = (
    "I moved to Lyon in 2010 and left it a year later.",
    "When I was a child we moved to Lyon.",
    "He told me that I moved to Lyon.",
    "I moved to the next chapter.",
    # Nothing is over.
    "I'm not only vegetarian but vegan.",
    "I work no longer than eight hours at Acme.",
    "I live no longer than ten minutes from Paris.",
    "I don't like it any more than you do.",
    "I'm not a vegetarian any more than you are.",
    "I don't have any more dogs.",
    "I'm used to living in Paris.",
    "I used to live in Paris, and I still do.",
    "I used to work at Acme and still do.",
    "I never stopped working at Acme.",
    "I haven't quit my job at Acme.",
    "I stopped by Acme.",
    "I no longer doubt that I live in Paris.",
    "If I no longer work at Acme, call me.",
    "She no longer works at Acme.",
    "Do I no longer work at Acme?",
    "I might no longer live in Paris.",
    "I don't work at Acme on Fridays.",
    "He said I no longer work at Acme.",
    "I'm not yet vegetarian.",
    "I can't wait any longer.",
    "I didn't stop taking metformin.",
    "I stopped working at five.",
    "I no longer work at Acme on Mondays.",
    "I was not born in Paris.",
    # Negations.
    "I never liked jazz.",
    "I'm not allergic to anything.",
    "Nobody calls me Bob.",
    "It's not true that I live in Paris.",
    # Questions.
    "Do I live in Paris?",
    "What is my name?",
    "Is my email anna@example.com?",
    "Did you know I love jazz?",
    "Can you remind me to call mom?",
    "My name is Anna, right?",
    # Conditions, guesses, wishes.
    "If I lived in Paris, I'd love it.",
    "If my name is Anna, call me.",
    "Maybe I like tea.",
    "I would love a cup of tea.",
    "I'd like a window seat.",
    "I wish I lived in Rome.",
    "Imagine I work at Google.",
    "I might move to Berlin next year.",
    "I guess I like opera.",
    "If all goes well, I live in Rome by then.",
    "Unless things change, I work at Acme.",
    "Let's pretend for a moment: my name is Bob.",
    "I live in Paris, supposedly.",
    "In my next novel, I live in Paris.",
    # Reported speech, quotations, transcripts, emails, code.
    "She said my name is Bob.",
    "He told me I love drama.",
    'The sign says "I live in Paris".',
    'Then she went: "My name is Eve. I live in Rome. I love jazz." and left.',
    "My brother thinks I hate Mondays.",
    "She said, my name is Bob.",
    "According to him, I live in Rome.",
    "They quoted the ad, and I love coffee.",
    "> I live in Paris.",
    "Anna: I live in Paris.",
    "anna: I live in Paris.",
    "**Anna**: I live in Paris.",
    "ANNA: I live in Paris.",
    "Dr. Bea Lang: I live in Paris.",
    "Ludwig van Beethoven: I live in Bonn.",
    "Speaker 1: I live in Paris.",
    "Tom S. (9:41): I live in Paris.",
    "Anna (Sales): I live in Rome.",
    "user: I live in Paris.",
    "Assistant: I live in Paris.",
    "Thanks!\n\nOn Mon, 3 Jun 2024, Tom wrote:\nI live in Paris.",
    "```\nmy name is Anna\n```",
    "In the song he is called Bob.",
    "He lives in Paris.",
    "You live in Paris.",
    # What only looks like a fact.
    "I work as hard as I can.",
    "I'm a slow writer.",
    "I'm an aspiring actor.",
    "I'm majoring in applied and computational things.",
    "I study way better at night.",
    "My major is pretty hard.",
    "I'm 20 minutes away.",
    "I'm 100 percent sure.",
    "I got engaged in a long talk.",
    "I use my phone.",
    "I use It at work.",
    "I use Mondays to rest.",
    "I'm using Chinese at home.",
    "I use 2 of them.",
    "I don't drink nearly as much as I used to.",
    "I don't eat donuts all day.",
    "I don't eat many burgers.",
    "I enjoy making that.",
    "I love games like that.",
    "I hate repeating myself.",
    "I love and miss my family.",
    "My favorite right now is tea.",
    "My favorite thing is a long walk.",
    "My favorite books are by Le Guin.",
    "I watched it with my wife Its fun.",
    "I live in a small house.",
    "I live in fear.",
    "I live in the UK team's channel.",
    "I work at home.",
    "I work for myself.",
    "Call me later.",
    "Call me Monday.",
    "My name is on the list.",
    "I was born in May.",
    "I'm a bit tired.",
    "I'm a doctor's son.",
    "I'm single-handedly carrying this team.",
    "I'm engaged in a project.",
    "I'm engaged with a customer right now.",
    "I'm engaged now with a customer.",
    "I like it.",
    "I love you.",
    "I like your idea.",
    "I like the idea of moving.",
    "I like how this works.",
    "I love the new design.",
    "I hate to bother you.",
    "I like where this is going.",
    "I feel like pizza.",
    "I don't eat much.",
    "My number is 42.",
    "I'll see my son Monday.",
    "I have a question.",
    "I need to go.",
    "I have to say I am impressed.",
    "Never mind.",
    "Always a pleasure!",
    "I've always wanted to visit Japan.",
    "From now on I will run every day.",
    "Never again!",
    "Never give up!",
    "Never be afraid.",
    "I love to!",
    "I like the sound of that.",
    "Have you always lived here?",
    "I speak for everyone.",
    "I own it.",
    "We're going to the cinema.",
    "The most recent, absolutely latest update: all is well.",
)


@pytest.mark.parametrize(("text", "expected"), FACTS, ids=[text for text, _ in FACTS])
def test_a_plain_statement_yields_its_facts(text: str, expected: tuple[str, ...]) -> None:
    assert sorted(f"{fact.predicate}={fact.object}" for fact in _facts(text)) == sorted(expected)


@pytest.mark.parametrize(("text", "expected"), OVER, ids=[text for text, _ in OVER])
def test_an_ended_or_denied_state_is_never_the_positive_fact(text: str, expected: tuple[str, ...]) -> None:
    assert sorted(f"{fact.predicate}={fact.object}" for fact in _facts(text)) == sorted(expected)


@pytest.mark.parametrize("rule", ENGLISH.rules, ids=[rule.name for rule in ENGLISH.rules])
def test_the_sentence_for_what_has_ended_says_so(rule: ExtractionRule) -> None:
    if rule.can_end:
        assert "no longer" in ENGLISH.ended_phrase(rule.phrase)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_not_plainly_stated_yields_no_facts(text: str) -> None:
    assert [fact.content for fact in _facts(text)] == []


@pytest.mark.parametrize("rule", ENGLISH.rules, ids=[rule.name for rule in ENGLISH.rules])
def test_every_rule_is_tested_and_is_never_certain(rule: ExtractionRule) -> None:
    assert 0 < rule.confidence < 1
    texts = [text.replace("\u2019", "'").rstrip(".!") for text, _ in (*FACTS, *OVER)]
    assert any(ENGLISH.pattern(rule).search(text) for text in texts)


def test_facts_tasks_events_and_instructions_get_their_kind() -> None:
    kinds = {
        "I live in Paris.": "fact",
        "Remind me to call mom.": "task",
        "We're flying to Rome next week.": "event",
        "Always use metric units.": "instruction",
    }
    assert {text: _facts(text)[0].kind for text in kinds} == kinds


def test_a_fact_is_self_contained_and_names_its_speaker_and_message() -> None:
    [fact] = facts_of(SourceMessage("01MESSAGE", "Dr. Bea Lang", "I live in Paris.", 5))
    assert fact.content == "Dr. Bea Lang lives in Paris"
    assert fact.subject == "speaker:dr_bea_lang"
    assert fact.message == "01MESSAGE"


@pytest.mark.parametrize("speaker", ["assistant", "System", "tool", " AI "])
async def test_what_a_machine_says_about_itself_is_not_a_fact(speaker: str) -> None:
    assert await RuleExtractor().extract([SourceMessage("m", speaker, "My name is Max. I live in Paris.")]) == []


def test_emphasis_does_not_raise_the_confidence_of_a_fact() -> None:
    plain, loud = (
        _facts("I live in Paris."),
        _facts("Most recent and 100% confirmed! I live in Paris. I live in Paris!!!"),
    )
    assert loud == plain


@given(st.lists(st.sampled_from([text for text, _ in FACTS] + list(NOTHING)), max_size=6))
def test_extraction_is_deterministic_and_returns_no_fact_twice(texts: list[str]) -> None:
    message = SourceMessage("m", "Bea", "\n".join(texts))
    facts = facts_of(message)
    assert facts_of(message) == facts
    assert len({(fact.predicate, fact.object) for fact in facts}) == len(facts)


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    for fact in facts_of(SourceMessage("m", "Bea", text)):
        assert fact.object.strip()


HOSTILE_BYTES = 128 * 1024
"""Four times the largest message. Linear work takes about a second, quadratic work minutes."""


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece", ["my name is A ", "I like a and ", "<memory ", "Hi, and so ", '"', "my dog A-", "I. ", "I work at A "]
)
def test_reading_hostile_repetition_takes_linear_work(piece: str) -> None:
    facts_of(SourceMessage("m", "Bea", piece * (HOSTILE_BYTES // len(piece))))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("filling", ["a ", "A ", "A-", "Aa, ", "and ", "a and ", "'s ", "a bit too much "])
@pytest.mark.parametrize("start", ["My name is ", "I live in ", "I work at ", "I like ", "My dog ", "I was born in "])
def test_the_longest_sentence_that_rules_read_needs_no_exponential_search(start: str, filling: str) -> None:
    room = MAX_SENTENCE - len(start)
    facts_of(SourceMessage("m", "Bea", start + (filling * room)[:room]))


def _facts(text: str) -> list[ExtractedFact]:
    return facts_of(SourceMessage("m", "Bea", text))


def test_a_message_of_empty_lines_is_read_at_once() -> None:
    """At each line the lines after it were read again: 64 KB took more than a minute."""
    facts = facts_of(SourceMessage("m", "Ann", "I live in Rome." + "\n" * 60_000 + "I work at Acme."))
    assert [fact.object for fact in facts] == ["Rome", "Acme"]


def test_lines_of_others_after_empty_lines_are_left_out() -> None:
    facts = facts_of(SourceMessage("m", "Ann", "I live in Rome.\n\n  \n  > I live in Oslo.\n\n Bob: I live in Bonn.\n"))
    assert [fact.object for fact in facts] == ["Rome"]
