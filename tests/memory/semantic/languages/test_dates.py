"""Dates in eight languages, as their English equivalents are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.memory.recall.languages.dates import in_english
from retain.memory.recall.preparation import prepare
from retain.memory.recall.query import analyse
from retain.memory.recall.times.dates import dates

NOW_MS = 1_782_900_000_000  # 1 July 2026, a Wednesday

SAME = {
    "de": {
        "Wer war gestern da?": "yesterday",
        "Was war vorgestern?": "day before yesterday",
        "vor drei Tagen ist er": "3 days ago",
        "vor 2 Wochen hat sie": "2 weeks ago",
        "vor einem Monat war": "1 month ago",
        "letzte Woche war ich": "last week",
        "letzten Montag war er": "last monday",
        "am Freitag hat er": "on friday",
        "am 3. März 2025 war": "3 march 2025",
        "Was war am 5. Mai?": "5 may",
        "im August war er": "in august",
        "im Jahr 2024 war": "in 2024",
        "am 3.5.2024 war": "3.5.2024",
        "Was war nächste Woche?": "next week",
        "seit März ist er": "since march",
        "Dezember 2025 war es": "december 2025",
    },
    "fr": {
        "Qui est venu hier ?": "yesterday",
        "avant-hier il était": "day before yesterday",
        "il y a trois jours il est": "3 days ago",
        "il y a 2 semaines": "2 weeks ago",
        "la semaine dernière nous": "last week",
        "le mois dernier elle est": "last month",
        "lundi dernier il est": "last monday",
        "le 3 mars 2025 il est": "3 march 2025",
        "le 1er mai elle est": "1 may",
        "en août il est": "in august",
        "le 3/5/2024 elle n'était pas là": "3.5.2024",
        "les 3 derniers jours elle": "last 3 days",
        "Quand est-ce l'année dernière ?": "last year",
        "depuis mars il est": "since march",
        "la semaine prochaine elle": "next week",
    },
    "es": {
        "¿Quién vino ayer?": "yesterday",
        "anteayer él estaba": "day before yesterday",
        "hace tres días ella": "3 days ago",
        "hace 2 semanas que": "2 weeks ago",
        "la semana pasada él": "last week",
        "el lunes pasado ella": "last monday",
        "el 3 de marzo de 2025 él": "3 march 2025",
        "¿Qué pasó el 5 de mayo?": "5 may",
        "en agosto ella": "in august",
        "¿qué pasó el 3/5/2024 con ella?": "3.5.2024",
        "el año pasado ella": "last year",
        "¿qué hay la semana que viene?": "next week",
    },
    "pt": {
        "Quem veio ontem? Não sei": "yesterday",
        "há três dias ele não": "3 days ago",
        "não há 2 semanas atrás": "2 weeks ago",
        "na semana passada ele não": "last week",
        "no dia 3 de março de 2025 ela não": "3 march 2025",
        "o que aconteceu em agosto? não": "in august",
        "anteontem não": "day before yesterday",
        "em 3/5/2024 você não foi": "3.5.2024",
        "no ano passado ele não": "last year",
    },
    "it": {
        "Chi è venuto ieri?": "yesterday",
        "tre giorni fa lui non": "3 days ago",
        "due settimane fa non": "2 weeks ago",
        "la settimana scorsa non": "last week",
        "lunedì scorso non è": "last monday",
        "il 3 marzo 2025 non": "3 march 2025",
        "che cosa è successo a maggio?": "in may",
        "il 5 maggio non": "5 may",
        "che cosa è successo il 3/5/2024": "3.5.2024",
        "l'altro ieri non": "day before yesterday",
        "l'anno scorso non": "last year",
    },
    "nl": {
        "Wie was er gisteren?": "yesterday",
        "eergisteren was hij": "day before yesterday",
        "drie dagen geleden was hij": "3 days ago",
        "2 weken geleden heeft hij": "2 weeks ago",
        "vorige week heeft ze": "last week",
        "vorige maandag was zij": "last monday",
        "op 3 maart 2025 heeft zij": "3 march 2025",
        "wat was er op 5 mei?": "5 may",
        "in augustus heeft hij": "in august",
        "op 3-5-2024 heeft zij het": "3.5.2024",
        "de afgelopen 3 dagen was het": "last 3 days",
    },
    "zh": {
        "昨天谁来了?": "yesterday",
        "前天发生了什么": "day before yesterday",
        "三天前": "3 days ago",
        "2个星期前": "2 weeks ago",
        "上周": "last week",
        "上周一": "last monday",
        "上个月": "last month",
        "去年": "last year",
        "2025年3月5日": "2025-03-05",
        "3月5日发生了什么": "5 march",
        "三月发生了什么": "in march",
        "2024年": "in 2024",
        "2025年3月": "2025-03",
        "两年前": "2 years ago",
    },
    "ja": {
        "昨日誰が来ましたか": "yesterday",
        "一昨日": "day before yesterday",
        "三日前": "3 days ago",
        "2週間前": "2 weeks ago",
        "先週": "last week",
        "先週の月曜日": "last monday",
        "先月": "last month",
        "去年": "last year",
        "2025年3月5日": "2025-03-05",
        "3月5日に何がありましたか": "5 march",
        "4月にリマへ行ったのは誰ですか": "in april",
        "3か月前": "3 months ago",
    },
}


@pytest.mark.parametrize(
    ("text", "english"),
    [pair for table in SAME.values() for pair in table.items()],
    ids=[t for o in SAME.values() for t in o],
)
def test_a_date_is_read_as_its_english_equivalent(text: str, english: str) -> None:
    expected = dates(english, NOW_MS)
    assert expected
    assert analyse(text, NOW_MS).times == expected


@pytest.mark.parametrize(
    "text", ["Der Vertrag ist gut.", "Il est là.", "Está bien.", "我住在北京", "彼は元気です", "Wir essen am Morgen."]
)
def test_what_names_no_date_has_none(text: str) -> None:
    assert analyse(text, NOW_MS).times == ()


@given(text=st.text(max_size=60), code=st.sampled_from([None, "en", "de", "fr", "es", "pt", "it", "nl", "ru"]))
def test_any_text_can_be_rewritten_and_an_english_one_stays(text: str, code: str | None) -> None:
    assert isinstance(dates(in_english(text, code), NOW_MS), tuple)
    assert in_english("on 3 May 2024", "en") == "on 3 May 2024"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Frau Nowak kommt am Dienstag zur Nachsorge.", True),
        ("Wir waren im März in der Schweiz und haben dort gewohnt.", True),
        ("昨日は京都に行きました。", True),
        ("他三月去了北京。", True),
        ("Frau Nowak kommt aus der Schweiz.", False),
        ("我住在北京。", False),
    ],
)
def test_a_text_that_names_a_time_is_indexed_as_such(text: str, named: bool) -> None:
    assert prepare(text, None).names_time is named
