"""The parts of Spanish rules' patterns, as regular expressions without capturing groups."""

from __future__ import annotations

from collections.abc import Mapping

_DAY = "(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)"
_MONTH = "(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|setiembre|octubre|noviembre|diciembre)"
_LETTERS = "A-ZÁÉÍÓÚÜÑ"
_CAPITAL = rf"[{_LETTERS}][\w'-]*"
_GIVEN = rf"[{_LETTERS}][a-záéíóúüñ]+(?:-[{_LETTERS}][a-záéíóúüñ]+)?"
_LANGUAGE = (
    "(?:(?:el )?(?:inglés|francés|alemán|español|castellano|italiano|neerlandés|holandés|portugués|polaco|ruso|ucraniano|"
    "mandarín|chino|japonés|coreano|árabe|hebreo|turco|griego|sueco|noruego|danés|finés|finlandés|checo|húngaro|rumano|"
    "hindi|persa|vietnamita|catalán|gallego|euskera|vasco|latín|esperanto|quechua|guaraní))"
)

PARTS: Mapping[str, str] = {
    "I": "(?:[Yy]o )?",
    "ME": "(?:[Aa] mí )?[Mm]e ",
    "IM": "(?:[Yy]o )?[Ss]oy ",
    "MY": "(?:[Mm]i|[Mm]is)",
    "ADV": (
        "(?:(?:actualmente|ahora|también|todavía|aún|realmente|siempre|principalmente|personalmente|sobre todo|solo|sólo|"
        r"solamente|sola|desde (?:\d{4}|niñ[oa]|siempre|hace (?:\w+ ){1,2}(?:años?|meses|semanas?|días))) ){0,4}"
    ),
    "PLEASE": "(?:[Pp]or favor,? )?",
    "NAME": rf"{_GIVEN}(?: (?:(?:de|del|de la|de los|y) )?{_GIVEN}){{0,3}}(?![\w-])",
    "FIRST": rf"(?!(?:Yo|Él|Ella|Y|Pero|Nosotros|Usted|Don|Doña|Señor|Señora|Dr|Dra|"
    rf"Navidad)\b){_GIVEN}(?: {_GIVEN})?(?![\w-])",
    "PLACE": (
        rf"(?!(?:Calle|Avenida|Plaza|Paseo|Navidad|Internet|Facebook|Instagram)\b)"
        rf"(?:(?:la |el |los |las )?{_CAPITAL}(?:(?:-| (?:(?:de|del|de la|de los|y|la|el) )?){_CAPITAL}){{0,4}})(?<![.])"
    ),
    "ORG": rf"(?:(?:la |el )?(?:[{_LETTERS}0-9][\w.&'-]*)(?: (?:(?:y|&|de|del|"
    rf"de la) )?[{_LETTERS}0-9][\w.&'-]*){{0,4}})(?<![.])",
    "END": (
        r"(?=\s*(?:$|[.,;:!)(]|-\s|\b(?:y|e|pero|con|por|para|desde|ahora|porque|ya que|donde|en|a|al|como|sobre|cerca|"
        r"así|también|actualmente|hace|junto|tod[oa]s?|cada|los|o|durante|hasta|según|de \w+ a|\d+)\b))"
    ),
    "STOP": (
        r"(?=\s*(?:$|[.,;!)(]|-\s|\b(?:y|e|pero|ahora|también|desde|hace|porque|de profesión|de oficio|con|para|"
        r"actualmente|este|el (?:año|mes)|la semana)\b))"
    ),
    "AREA": (
        "(?:Alemania|Argentina|Australia|Barcelona|Bogotá|Bolivia|Boston|Brasil|Buenos Aires|Canadá|Chile|China|Colombia|"
        "Ecuador|España|Estados Unidos|Europa|Francia|Guatemala|Inglaterra|Italia|Japón|Lima|Londres|Madrid|México|Miami|"
        "Navidad|Nueva York|París|Perú|Roma|Santiago|Sevilla|Tokio|Berlín|Uruguay|Valencia|Venezuela)"
    ),
    "EMAIL": r"[A-Za-z0-9][\w.+-]*@[\w-]+(?:\.[\w-]+)+",
    "PHONE": r"\+?\(?\d(?:[\s().-]{0,2}\d){6,14}",
    "DATE": rf"(?:(?:el )?(?:1\.?º|\d{{1,2}}) de {_MONTH}(?: (?:de|del) \d{{4}})?|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|"
    rf"\d{{4}}-\d\d-\d\d)",
    "DUE": (
        rf"(?:\b(?:antes|para|este|el|al|próximo|hasta) (?:de |del |el |la |las |final del? )?(?:{_DAY}|mañana|hoy|"
        rf"esta noche|mediodía|fin de semana|semana|mes|\d)|\bmañana\b|\bpasado mañana\b|\besta (?:noche|tarde|semana)\b|"
        rf"\bla semana que viene\b|\bla próxima semana\b|\b{_DAY}\b)"
    ),
    "SOON": (
        rf"(?:\bmañana\b|\beste {_DAY}\b|\bel (?:próximo )?{_DAY}\b|\b(?:la semana|el mes|el año|el verano) que viene\b|"
        rf"\b(?:la próxima semana|el próximo (?:mes|año|verano)|este verano|este fin de semana)\b|\ben {_MONTH}\b)"
    ),
    "WOMAN": (
        "(?:mujer|esposa|pareja|prometida|novia|hija|madre|mamá|hermana|suegra|cuñada|abuela|tía|prima|sobrina|nieta|amiga|"
        "compañera de piso|vecina|jefa|colega|gata|perra|perrita|gatita|yegua|tortuga)"
    ),
    "MAN": (
        "(?:marido|esposo|compañero de piso|prometido|novio|hijo|padre|papá|hermano|suegro|cuñado|abuelo|tío|primo|sobrino|"
        "nieto|amigo|vecino|jefe|médico|dentista|bebé|perro|perrito|gato|gatito|cachorro|caballo|conejo|hámster|loro)"
    ),
    "AGED": "(?:(?:pequeñ[oa]|mejor|querid[oa]|nuev[oa]) )*",
    "AFTER": "(?: (?:mayor|menor|pequeñ[oa]|mediano|mediana|gemel[oa]))?",
    "COUNTED": (
        "(?:perr(?:o|a|os|as|itos?|itas?)|gat(?:o|a|os|as|itos?|itas?)|cachorros?|hij(?:o|a|os|as)|niñ(?:o|a|os|as)|"
        "herman(?:o|a|os|as)|niet(?:o|a|os|as)|caballos?|conejos?|hámsters?|loros?|gallinas?|peces|sobrin(?:o|a|os|as)|"
        "gemel(?:os|as)|mellizos|tortugas?)"
    ),
    "JOB": (
        "(?:abogad[oa]|actor|actriz|administrativ[oa]|agente inmobiliari[oa]|agricultor(?:a)?|albañil|arquitect[oa]|"
        "asistente social|azafata|bibliotecari[oa]|bióloga|biólogo|bomber[oa]|cajer[oa]|camarer[oa]|camioner[oa]|"
        "carnicer[oa]|carpinter[oa]|carter[oa]|científic[oa]|cirujan[oa]|cociner[oa]|conductor(?:a)?(?: de \\w+)?|"
        "consultor(?:a)?|contable|contador(?:a)?|dentista|dependient[ea]|diseñador(?:a)?(?: gráfic[oa])?|economista|"
        "electricista|enfermer[oa]|farmacéutic[oa]|físic[oa]|fisioterapeuta|florista|fontaner[oa]|fotógraf[oa]|"
        "funcionari[oa]|granjer[oa]|guía turístic[oa]|historiador(?:a)?|informátic[oa]|ingenier[oa](?: \\w+)?|"
        "investigador(?:a)?|jardiner[oa]|juez|jueza|limpiador(?:a)?|maestr[oa](?: de \\w+)?|mecánic[oa]|médic[oa]|meser[oa]|"
        "modista|niñera|notari[oa]|oficinista|panader[oa]|peluquer[oa]|periodista|pescador(?:a)?|piloto|plomer[oa]|policía|"
        "profesor(?:a)?(?: de \\w+)?|programador(?:a)?(?: \\w+)?|psicólog[oa]|químic[oa]|recepcionista|redactor(?:a)?|"
        "secretari[oa]|soldador(?:a)?|taxista|técnic[oa]|traductor(?:a)?|vendedor(?:a)?|veterinari[oa]|zapater[oa])"
    ),
    "WORKPLACE": (
        "(?:academia|agencia|almacén|banco|bar|biblioteca|bufete|cafetería|clínica|colegio|despacho|escuela|fábrica|"
        "farmacia|floristería|garaje|gasolinera|granja|guardería|hospital|hotel|imprenta|instituto|laboratorio|librería|"
        "museo|oficina|panadería|peluquería|restaurante|supermercado|taller|teatro|tienda|universidad)"
        "(?: (?:de|del) [a-záéíóúñ]+)?"
    ),
    "PURSUIT": (
        "(?:estudiante(?: de \\w+)?|jubilad[oa]|aprendiz|músico|música|cantante|bailarín|bailarina|artista|escritor(?:a)?|"
        "autor(?:a)?|pintor(?:a)?|poeta|pianista|guitarrista|ama de casa|voluntari[oa]|becari[oa])"
    ),
    "LANGUAGE": _LANGUAGE,
    "PLAYED": (
        "(?:(?:el |la )?(?:acordeón|banjo|bajo|batería|clarinete|gaita|flauta|guitarra|armónica|arpa|órgano|piano|saxofón|"
        "trombón|trompeta|ukelele|violín|violonchelo|viola|percusión))"
    ),
    "SPORT": (
        "(?:bádminton|baloncesto|básquet|béisbol|balonmano|cartas|ajedrez|fútbol(?: sala)?|golf|hockey|videojuegos|pádel|"
        "ping-?pong|póker|rugby|squash|tenis|vóleibol|voleibol)"
    ),
    # What a person can instruct an assistant to do: the imperative, and what follows "nunca".
    "DO": (
        "(?i:(?:responde|responda|respondé|contesta|conteste|contestá|escribe|escriba|escribí|usa|use|usá|utiliza|utilice|"
        "explica|explique|añade|añada|agrega|agregue|evita|evite|menciona|mencione|traduce|traduzca|incluye|incluya|"
        "respóndeme|respóndame|contéstame|contésteme|escríbeme|escríbame|háblame|hábleme|explícame|explíqueme|dame|deme|"
        "dime|dígame|muéstrame|muéstreme|avísame|avíseme|pregúntame|pregúnteme|llámame|llámeme|trátame|tráteme|"
        "recomiéndame|recomiéndeme|envíame|envíeme|mándame|mándeme))"
    ),
    "NOTDO": (
        "(?i:(?:me )?(?:respondas?|contestes?|escribas?|uses?|utilices?|expliques?|añadas?|agregues?|menciones?|"
        "traduzcas?|incluyas?|des|muestres?|preguntes?|llames?|trates?|recomiendes?|envíes?|mandes?)|me hables?)"
    ),
    "EVER": "(?i:siempre|de ahora en adelante|a partir de ahora|en adelante)",
}

NAMES: Mapping[str, str] = {
    "mujer": "wife", "esposa": "wife", "marido": "husband", "esposo": "husband", "pareja": "partner",
    "novia": "girlfriend", "novio": "boyfriend", "hija": "daughter", "hijo": "son", "madre": "mother", "mamá": "mother",
    "padre": "father", "papá": "father", "hermana": "sister", "hermano": "brother", "abuela": "grandmother",
    "abuelo": "grandfather", "tía": "aunt", "tío": "uncle", "sobrino": "nephew", "sobrina": "niece", "amigo": "friend",
    "amiga": "friend", "prima": "cousin", "primo": "cousin", "nieta": "granddaughter", "nieto": "grandson",
    "perro": "dog", "perra": "dog", "perrito": "dog", "perrita": "dog", "gato": "cat", "gata": "cat", "gatito": "cat",
    "gatita": "cat", "caballo": "horse", "jefe": "boss", "jefa": "boss", "vecino": "neighbour", "vecina": "neighbour",
    "colega": "colleague", "color": "color", "plato": "dish", "comida": "food", "película": "movie", "libro": "book",
    "canción": "song", "banda": "band", "grupo": "band", "animal": "animal", "deporte": "sport", "ciudad": "city",
    "país": "country", "asignatura": "subject", "bebida": "drink", "música": "music", "serie": "series",
    "autor": "author", "autora": "author", "fruta": "fruit", "juego": "game", "equipo": "team", "estación": "season",
    "postre": "dessert", "número": "number", "flor": "flower", "pasatiempo": "hobby", "afición": "hobby",
    "cantante": "singer", "actor": "actor", "actriz": "actress", "restaurante": "restaurant", "lugar": "place",
    "escritor": "writer", "escritora": "writer", "programa": "show", "videojuego": "video_game",
    "cuñado": "brother_in_law", "cuñada": "sister_in_law", "suegro": "father_in_law", "suegra": "mother_in_law",
}  # fmt: skip
"""Spanish words of relations, and how their names have them, so that a fact is one in any language."""
