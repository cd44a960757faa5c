"""What kind a query is, in eight languages, as its English equivalent is read; and what recall makes of it."""

from __future__ import annotations

import pytest

from retain.memory.recall.languages.kinds import KINDS
from retain.memory.recall.query import analyse
from retain.memory.recall.times.dates import DAY_MS
from retain.memory.records.record import Utterance
from tests.memory.semantic.notes import NOTES, fill
from tests.memory.semantic.substrate import Substrate

NOW_MS = 1_782_900_000_000
MESSAGE, ANSWERED, OWN_PAST, ADVICE, WHEN, IDEAS, BACK = (
    "We will paint my kitchen.",
    "What did you recommend for the kitchen?",
    "Which colour did I choose for my kitchen?",
    "How can I paint a kitchen?",
    "When was the kitchen painted?",
    "Painting my kitchen is hard. Do you have any ideas?",
    "I was looking at our previous conversation about the kitchen. Remind me of the colour.",
)
SAME = {
    "de": {
        "Wir streichen meine Küche.": MESSAGE,
        "Was hast du für die Küche empfohlen?": ANSWERED,
        "Welche Farbe habe ich für meine Küche gewählt?": OWN_PAST,
        "Wie kann ich eine Küche streichen?": ADVICE,
        "Wann wurde die Küche gestrichen?": WHEN,
        "Meine Küche zu streichen ist schwer. Was meinst du dazu?": IDEAS,
        "Ich denke an unser letztes Gespräch über die Küche. Erinnere mich an die Farbe.": BACK,
    },
    "fr": {
        "Nous allons peindre ma cuisine.": MESSAGE,
        "Qu'est-ce que tu as recommandé pour la cuisine ?": ANSWERED,
        "Quelle couleur ai-je choisie pour ma cuisine ?": OWN_PAST,
        "Comment puis-je peindre une cuisine ?": ADVICE,
        "Quand est-ce que la cuisine a été peinte ?": WHEN,
        "Peindre ma cuisine est difficile. Avez-vous des idées ?": IDEAS,
        "Je pense à notre dernière conversation sur la cuisine. Rappelle-moi la couleur.": BACK,
    },
    "es": {
        "Nosotros vamos a pintar mi cocina.": MESSAGE,
        "¿Qué me recomendaste para la cocina?": ANSWERED,
        "¿Qué color tengo en mi cocina?": OWN_PAST,
        "¿Cómo puedo pintar una cocina?": ADVICE,
        "¿Cuándo se pintó la cocina?": WHEN,
        "Pintar mi cocina es difícil. ¿Algún consejo para ello?": IDEAS,
        "Yo pensaba en nuestra última conversación sobre la cocina. Recuérdame el color.": BACK,
    },
    "pt": {
        "Nós vamos pintar a minha cozinha.": MESSAGE,
        "O que você recomendou para a cozinha?": ANSWERED,
        "Que cor tem a minha cozinha?": OWN_PAST,
        "Como posso pintar uma cozinha em casa?": ADVICE,
        "Quando foi que a cozinha ficou pintada?": WHEN,
        "Pintar a minha cozinha é difícil. Alguma ideia para isso?": IDEAS,
        "Eu pensava na nossa última conversa sobre a cozinha. Lembra-me da cor.": BACK,
    },
    "it": {
        "Noi dipingiamo la mia cucina.": MESSAGE,
        "Che cosa mi hai consigliato per la cucina?": ANSWERED,
        "Quale colore ho scelto per la mia cucina?": OWN_PAST,
        "Come posso dipingere una parete della cucina?": ADVICE,
        "Quando è stata dipinta la cucina?": WHEN,
        "Dipingere la mia cucina è difficile. Qualche idea per questo?": IDEAS,
        "Io pensavo alla nostra ultima conversazione sulla cucina. Ricordami il colore.": BACK,
    },
    "nl": {
        "Wij gaan mijn keuken verven.": MESSAGE,
        "Wat heb je voor de keuken aanbevolen?": ANSWERED,
        "Welke kleur heb ik voor mijn keuken gekozen?": OWN_PAST,
        "Hoe kan ik een keuken verven?": ADVICE,
        "Wanneer is de keuken geverfd?": WHEN,
        "Mijn keuken verven is moeilijk. Heb je tips voor zoiets?": IDEAS,
        "Ik dacht aan ons laatste gesprek over de keuken. Herinner me aan de kleur.": BACK,
    },
    "zh": {
        "我们要粉刷我的厨房。": MESSAGE,
        "你上次推荐了什么厨房颜色？": ANSWERED,
        "我之前给厨房选了什么颜色？": OWN_PAST,
        "怎么才能粉刷厨房？": ADVICE,
        "厨房是什么时候粉刷的？": WHEN,
        "粉刷我的厨房很难。有什么好主意？": IDEAS,
        "我在看上次关于厨房的对话。请提醒我颜色。": BACK,
    },
    "ja": {
        "私の台所を塗りましょう。": MESSAGE,
        "台所に何を勧めてくれましたか。": ANSWERED,
        "私の台所は何色でしたか。": OWN_PAST,
        "台所はどうすれば塗れますか。": ADVICE,
        "台所はいつ塗られましたか。": WHEN,
        "私の台所を塗るのは難しい。アイデアはありますか。": IDEAS,
        "私は前回の会話を見ています。台所の色を思い出させて。": BACK,
    },
}


def kinds_of(text: str) -> tuple[bool, bool, bool, bool]:
    query = analyse(text, NOW_MS)
    return query.message, query.of_user, query.request, query.asks_when


@pytest.mark.parametrize(
    ("code", "text", "english"),
    [pytest.param(code, *pair, id=pair[0]) for code, pairs in SAME.items() for pair in pairs.items()],
)
def test_a_query_is_of_the_kind_of_its_english_equivalent(code: str, text: str, english: str) -> None:
    assert analyse(text, NOW_MS).language == code
    assert kinds_of(text) == kinds_of(english)


def test_the_equivalents_differ_from_each_other_in_every_kind() -> None:
    found = [kinds_of(one) for one in (MESSAGE, ANSWERED, OWN_PAST, ADVICE, WHEN, IDEAS, BACK)]
    assert all({one[place] for one in found} == {True, False} for place in range(4))


def test_every_language_with_kinds_but_english_is_tried() -> None:
    assert {*KINDS} == {"en", *SAME, *INSTRUCTED, *PREFERRED, *CORRECTED}


INSTRUCTED = {
    "de": ("Wenn ich nach Strecken frage, gib die Entfernung in Meilen an.", "Wie komme ich auf den Gipfel?"),
    "fr": ("Quand je te demande un chemin, donne la distance en lieues.", "Comment faire pour monter au sommet ?"),
    "es": ("Cuando te pregunte por una ruta, dame la distancia en leguas.", "¿Cómo puedo subir a la cumbre?"),
    "pt": ("Sempre que eu perguntar por um caminho, diz a distância em léguas.", "Como posso subir a uma montanha?"),
    "it": ("Quando ti chiedo un sentiero, dimmi la distanza in leghe.", "Che strumenti servono per la cima?"),
    "nl": ("Als ik vraag naar een route, geef de afstand in mijlen.", "Hoe kan ik de top beklimmen?"),
    "zh": ("当我问路线的时候，请用英里。", "怎么才能登上山顶？"),
    "ja": ("道を聞いたら、距離はマイルで言ってください。", "山頂へはどうすれば登れますか。"),
}


@pytest.mark.parametrize("code", INSTRUCTED)
async def test_a_standing_instruction_is_found_by_a_request_in_its_language(substrate: Substrate, code: str) -> None:
    instruction, request = INSTRUCTED[code]
    await fill(substrate, NOTES)
    await fill(substrate, (instruction,))
    hits = await substrate.hits(request, top_k=50)
    assert {hit.record.content for hit in hits if hit.components["standing"] > 0} == {instruction}


PREFERRED = {
    "de": ("Ich bevorzuge flache Wege.", "Ich kenne flache Wege.", "Kannst du mir flache Wege empfehlen?"),
    "fr": (
        "Je préfère les chemins plats.",
        "Je connais les chemins plats.",
        "Peux-tu me recommander des chemins plats ?",
    ),
    "es": ("Prefiero los caminos llanos.", "Conozco los caminos llanos.", "¿Me recomiendas unos caminos llanos?"),
    "pt": ("Prefiro os caminhos planos.", "Conheço os caminhos planos.", "Recomenda uns caminhos planos para mim?"),
    "it": ("Preferisco i sentieri piani.", "Conosco i sentieri piani.", "Quali sentieri piani mi consigli?"),
    "nl": ("Ik loop liever vlakke paden.", "Ik ken vlakke paden.", "Kun je mij vlakke paden aanbevelen?"),
    "zh": ("我更喜欢平坦的路。", "我认识平坦的路。", "请推荐平坦的路。"),
    "ja": ("平らな道のほうが好きです。", "平らな道を知っています。", "平らな道を勧めてください。"),
}


@pytest.mark.parametrize("code", PREFERRED)
async def test_a_request_prefers_what_states_a_preference_in_its_language(substrate: Substrate, code: str) -> None:
    stated, other, request = PREFERRED[code]
    await fill(substrate, (other, stated))
    preferred = {hit.record.content: hit.components["preference"] > 0 for hit in await substrate.hits(request)}
    assert preferred == {stated: True, other: False}


AVERSE = {
    "en": ("I avoid steep paths.", "What are some paths for my holiday?"),
    "de": ("Ich vermeide steile Wege.", "Was sind gute Wege für meinen Urlaub?"),
    "fr": ("Je déteste les chemins raides.", "Quels sont les meilleurs chemins pour mes vacances ?"),
    "es": ("No me gustan los caminos empinados.", "¿Cuáles son los mejores caminos para mis vacaciones?"),
    "pt": ("Detesto os caminhos íngremes.", "Quais são os melhores caminhos para minhas férias?"),
    "it": ("Evito i sentieri ripidi.", "Quali sono i migliori sentieri per le mie vacanze?"),
    "nl": ("Ik hou niet van steile paden.", "Wat zijn de beste paden voor mijn vakantie?"),
    "zh": ("我不喜欢陡峭的路。", "请推荐假期走的路。"),
    "ja": ("急な坂道は苦手です。", "坂道のある町を勧めてください。"),
}


@pytest.mark.parametrize("code", AVERSE)
async def test_advice_minds_what_states_an_aversion_and_not_what_an_assistant_says(
    substrate: Substrate, code: str
) -> None:
    stated, request = AVERSE[code]
    await substrate.store(stated, utterance=Utterance("walks", 0, "user"))
    await substrate.store(stated, utterance=Utterance("talks", 0, "assistant"))
    hits = await substrate.hits(request)
    minded = {turn.speaker: hit.components["preference"] > 0 for hit in hits if (turn := hit.record.utterance)}
    assert minded == {"user": True, "assistant": False}


async def test_a_question_that_asks_for_no_advice_minds_no_preference(substrate: Substrate) -> None:
    await fill(substrate, ("Bea avoids steep paths.",))
    [hit] = await substrate.hits("Which paths does Bea avoid?")
    assert hit.components["preference"] == 0.0


async def test_a_preference_counts_the_less_the_longer_its_text_is(substrate: Substrate) -> None:
    """In a long text it is mentioned in passing."""
    beginning = "I prefer flat paths."
    await fill(substrate, tuple(beginning + " We walked on." * number for number in (0, 50, 150)))
    hits = await substrate.hits("Could you recommend flat paths?")
    counted = [hit.components["preference"] for hit in sorted(hits, key=lambda hit: len(hit.record.content))]
    assert counted[0] > counted[1] > counted[2] == 0.0


CORRECTED = {
    "de": (
        "Der Markt öffnet um sieben Uhr.",
        "Die Zeit wurde geändert: Der Markt öffnet um neun Uhr.",
        "Um wie viel Uhr öffnet der Markt?",
    ),
    "fr": (
        "Le marché ouvre à sept heures.",
        "L'horaire est modifié : le marché ouvre à neuf heures.",
        "À quelle heure ouvre le marché ?",
    ),
    "es": (
        "El mercado abre a las siete.",
        "El mercado ha cambiado y ahora abre a las nueve.",
        "¿A qué hora abre el mercado?",
    ),
    "pt": (
        "A feira abre às sete da manhã.",
        "O horário mudou: a feira abre às nove da manhã.",
        "A que horas é que a feira abre?",
    ),
    "it": (
        "Il mercato apre alle sette.",
        "L'orario è cambiato: il mercato apre alle nove.",
        "A che ora apre il mercato?",
    ),
    "nl": (
        "De markt opent om zeven uur.",
        "De tijd is gewijzigd: de markt opent om negen uur.",
        "Hoe laat opent de markt?",
    ),
    "zh": ("菜市场早上七点开门。", "菜市场早上改为九点开门。", "菜市场早上几点开门？"),
    "ja": ("朝市は七時に開きます。", "朝市は九時に開くように変わりました。", "朝市は何時に開きますか。"),
}


async def check_order(substrate: Substrate, earlier: str, later: str, query: str) -> float:
    """Store two statements a day apart, check that the later one comes first, and return what the earlier one lost."""
    for content in (earlier, later):
        substrate.clock.advance(DAY_MS)
        await substrate.store(content)
    hits = await substrate.hits(query, top_k=2)
    assert [hit.record.content for hit in hits] == [later, earlier]
    return hits[1].components["contradicted"]


@pytest.mark.parametrize("code", CORRECTED)
async def test_a_correction_in_another_language_comes_before_what_it_corrects(substrate: Substrate, code: str) -> None:
    assert await check_order(substrate, *CORRECTED[code]) < 0


DENIED = {
    "de": (
        "Die Lieferung kommt am Montag.",
        ("Die Lieferung kommt am Mittwoch, nicht am Montag.", "Die Lieferung kommt am Mittwoch statt am Montag."),
        "Wann kommt die Lieferung?",
    ),
    "fr": (
        "La livraison arrive lundi.",
        ("La livraison arrive mercredi, pas lundi.", "La livraison n'arrive pas lundi mais mercredi."),
        "Quel jour arrive la livraison ?",
    ),
    "es": (
        "El pedido llega el lunes.",
        ("El pedido llega el miércoles, no el lunes.", "El pedido no llega el lunes, sino el miércoles."),
        "¿Qué día llega el pedido?",
    ),
    "pt": (
        "A encomenda chega na segunda.",
        ("A encomenda chega na quarta, não na segunda.", "A encomenda chega na quarta em vez da segunda."),
        "Em que dia é que a encomenda chega?",
    ),
    "it": (
        "Il pacco arriva lunedì.",
        ("Il pacco arriva mercoledì, non lunedì.", "Il pacco non arriva lunedì ma mercoledì."),
        "Che giorno arriva il pacco?",
    ),
    "nl": (
        "Het pakket komt op maandag.",
        ("Het pakket komt op woensdag, niet op maandag.", "Het pakket komt niet op maandag, maar op woensdag."),
        "Op welke dag komt het pakket?",
    ),
    "zh": ("包裹星期一送到。", ("包裹星期三送到，不是星期一。", "包裹不是星期一而是星期三送到。"), "包裹哪天送到？"),
    "ja": ("荷物は月曜日に届きます。", ("荷物は月曜日ではなく水曜日に届きます。",), "荷物は何曜日に届きますか。"),
}


@pytest.mark.parametrize(("code", "place"), [(code, place) for code in DENIED for place in range(len(DENIED[code][1]))])
async def test_what_denies_a_statement_in_another_language_comes_before_it(
    substrate: Substrate, code: str, place: int
) -> None:
    earlier, corrections, query = DENIED[code]
    await check_order(substrate, earlier, corrections[place], query)


async def test_an_opposite_in_another_language_comes_after_what_is_asked(substrate: Substrate) -> None:
    allowed, forbidden = "Hunde dürfen auf die Fähre nach Capri.", "Hunde dürfen nicht auf die Fähre nach Elba."
    await fill(substrate, (*NOTES, allowed, forbidden))
    assert (await substrate.found("Auf welche Fähre dürfen Hunde?"))[:2] == [allowed, forbidden]
    assert (await substrate.found("Auf welche Fähre dürfen Hunde nicht?"))[:2] == [forbidden, allowed]


async def test_what_a_user_said_comes_first_unless_the_answer_is_asked_for_in_another_language(
    substrate: Substrate,
) -> None:
    for place, (speaker, content) in enumerate(
        (("user", "Ich streiche die Küche gelb."), ("assistant", "Die Küche wird gelb, streiche sie zweimal."))
    ):
        await substrate.store(content, utterance=Utterance("chat", place, speaker, NOW_MS))
    lowered = {
        query: [hit.components["assistant"] < 0 for hit in await substrate.hits(query) if hit.record.content[0] == "D"]
        for query in ("Welche Farbe bekommt die Küche?", "Was hast du zur Küche gesagt?")
    }
    assert [*lowered.values()] == [[True], [False]]


def test_a_word_of_another_language_is_not_an_english_pronoun() -> None:
    """ "I" is an article in Italian."""
    query = analyse("Anna compra i biglietti della metropolitana.", NOW_MS)
    assert (query.language, query.message) == ("it", False)
