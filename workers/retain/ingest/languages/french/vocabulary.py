"""The parts of French rules' patterns, as regular expressions without capturing groups."""

from __future__ import annotations

from collections.abc import Mapping

_DAY = "(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
_MONTH = "(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)"
_LETTERS = "A-ZÀÂÄÇÉÈÊËÎÏÔÖÙÛÜ"
_CAPITAL = rf"[{_LETTERS}][\w'-]*"
_GIVEN = rf"[{_LETTERS}][a-zà-ÿ]+(?:-[{_LETTERS}][a-zà-ÿ]+)?"
_TIMES = r"(?:depuis (?:\d{4}|peu|longtemps|toujours|hier|(?:\w+ ){0,2}?(?:ans?|années?|mois|semaines?|jours)))"
_LANGUAGE = (
    "(?:(?:l'|le |la )?(?:anglais|français|allemand|espagnol|italien|néerlandais|portugais|polonais|russe|ukrainien|"
    "mandarin|"
    "chinois|japonais|coréen|arabe|hébreu|turc|grec|suédois|norvégien|danois|finnois|tchèque|hongrois|roumain|hindi|persan|"
    "vietnamien|catalan|basque|breton|occitan|latin|berbère|kabyle|wolof))"
)

PARTS: Mapping[str, str] = {
    "I": "(?:[Mm]oi,? )?[Jj]e ",
    "J": "(?:[Mm]oi,? )?[Jj]'",
    "IM": "(?:[Mm]oi,? )?[Jj]e suis ",
    "MY": "(?:[Mm]on|[Mm]a|[Mm]es)",
    "ADV": (
        "(?:(?:actuellement|maintenant|aussi|encore|vraiment|toujours|beaucoup|bien|surtout|également|généralement|"
        f"normalement|personnellement|principalement|juste|absolument|totalement|tellement|trop|très|davantage|"
        f"particulièrement|seulement|simplement|{_TIMES}) ){{0,4}}"
    ),
    "PLEASE": "(?:(?:[Ss]'il (?:te|vous) plaît|[Ss]vp|[Ss]tp),? |[Mm]erci de )?",
    "NAME": rf"{_GIVEN}(?: (?:(?:de|du|des|d'|le|la|van|von) ?)?{_GIVEN}){{0,3}}(?![\w-])",
    "FIRST": rf"(?!(?:Je|Il|Elle|Et|Mais|Nous|Vous|Monsieur|Madame|Dr)\b){_GIVEN}(?: {_GIVEN})?(?![\w-])",
    "PLACE": (
        rf"(?:(?:la |le |l'|les )?(?!Noël\b){_CAPITAL}"
        rf"(?:(?:-| (?:sur|sous|en|de|du|la|le|les)[ -]| ){_CAPITAL}){{0,4}})(?<![.])"
    ),
    "ORG": rf"(?:(?:la |le |l'|les )?(?:[{_LETTERS}0-9][\w.&'-]*)(?: (?:(?:et|&|de|du|"
    rf"des) )?[{_LETTERS}0-9][\w.&'-]*){{0,4}})(?<![.])",
    "END": (
        r"(?=\s*(?:$|[.,;:!)(]|-\s|\b(?:et|mais|avec|pour|depuis|maintenant|parce|car|puisque|où|dans|en|au|aux|à|"
        r"chez|comme|sur|de|du|près|qui|donc|aussi|actuellement|en ce moment|tout|ou|\d+)\b))"
    ),
    "STOP": r"(?=\s*(?:$|[.,;!)(]|-\s|\b(?:et|mais|avec|maintenant|aussi|depuis|à la retraite|de métier|de profession)\b))",
    "EMAIL": r"[A-Za-z0-9][\w.+-]*@[\w-]+(?:\.[\w-]+)+",
    "PHONE": r"\+?\(?\d(?:[\s().-]{0,2}\d){6,14}",
    "DATE": rf"(?:(?:le )?(?:1er|\d{{1,2}}) {_MONTH}(?: \d{{4}})?|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|\d{{4}}-\d\d-\d\d)",
    "DUE": (
        rf"(?:\b(?:avant|d'ici|pour|ce|le|à|la semaine|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche) "
        rf"(?:{_DAY}|demain|ce soir|midi|soir|matin|après-midi|week-end|prochaine?|la fin|\d)|\bdemain\b|\baprès-demain\b|"
        rf"\bce soir\b|\b{_DAY} prochain\b|\b{_DAY}\b)"
    ),
    "WOMAN": (
        "(?:femme|épouse|compagne|fiancée|copine|fille|mère|maman|sœur|soeur|belle-mère|belle-sœur|grand-mère|mamie|tante|"
        "cousine|nièce|petite-fille|amie|colocataire|voisine|cheffe|patronne|collègue|thérapeute|chatte|chienne|jument)"
    ),
    "MAN": (
        "(?:mari|époux|compagnon|fiancé|copain|fils|père|papa|frère|beau-père|beau-frère|grand-père|papi|oncle|cousin|neveu|"
        "petit-fils|ami|voisin|chef|patron|médecin|dentiste|bébé|chien|chat|chiot|chaton|cheval|lapin|hamster|perroquet)"
    ),
    "AGED": "(?:(?:petite?|grande?|jeune|meilleure?|cher|chère|nouveau|nouvelle) )*",
    "COUNTED": (
        "(?:chiens?|chiennes?|chiots?|chats?|chattes?|chatons?|enfants?|filles?|fils|garçons?|frères?|sœurs?|soeurs?|"
        "petits-enfants|chevaux|cheval|lapins?|hamsters?|perroquets?|poules|poissons rouges|neveux|nièces?|jumeaux|jumelles)"
    ),
    "JOB": (
        "(?:acteur|actrice|architecte|assistante? (?:sociale?|maternelle)|avocate?|agent (?:immobilier|d'assurance|"
        "de sécurité)|"
        "agriculteur|agricultrice|aide-soignante?|bibliothécaire|biologiste|boulanger|boulangère|caissier|caissière|"
        "camionneur|chauffeur(?: de \\w+)?|chef de projet|chercheur|chercheuse|chimiste|chirurgien(?:ne)?|coiffeur|"
        "coiffeuse|comptable|"
        "consultante?|couturière|cuisinier|cuisinière|dentiste|designer|développeu(?:r|se)(?: \\w+)?|directeur|directrice|"
        "économiste|éducateur|éducatrice|électricien(?:ne)?|enseignante?|esthéticienne|fermier|fermière|fleuriste|"
        "fonctionnaire|graphiste|historien(?:ne)?|infirmier|infirmière|informaticien(?:ne)?|ingénieure?(?: \\w+)?|"
        "institutrice|instituteur|"
        "jardinier|journaliste|juge|juriste|kinésithérapeute|maçon|maître-nageur|maîtresse d'école|mécanicien(?:ne)?|"
        "médecin|"
        "menuisier|musicothérapeute|notaire|opticien(?:ne)?|orthophoniste|pharmacien(?:ne)?|photographe|physicien(?:ne)?|"
        "pilote|plombier|policier|policière|pompier|professeure?(?: (?:de|d')\\s?[\\w-]+)?|programmeu(?:r|se)|"
        "psychologue|rédactrice|rédacteur|"
        "sage-femme|secrétaire|serveur|serveuse|scientifique|technicien(?:ne)?|traducteur|traductrice|vendeur|vendeuse|"
        "vétérinaire)"
    ),
    "WORKPLACE": (
        "(?:agence|atelier|banque|bar|bibliothèque|boulangerie|bureau|cabinet|café|centre commercial|clinique|collège|"
        "école(?: primaire| maternelle)?|épicerie|"
        "ferme|garage|hôpital|hôtel|imprimerie|laboratoire|librairie|lycée|magasin|mairie|musée|pharmacie|refuge|"
        "restaurant|salon de coiffure|start-?up|supermarché|théâtre|université|usine)(?: (?:de|d'|pour|à) ?[a-zà-ÿ-]+)?"
    ),
    "PURSUIT": (
        "(?:étudiante?|lycéen(?:ne)?|retraitée?|apprentie?|musicien(?:ne)?|chanteur|chanteuse|danseur|danseuse|"
        "artiste|écrivaine?|"
        "auteure?|peintre|femme au foyer|homme au foyer|mère au foyer|père au foyer|doctorante?|stagiaire|bénévole)"
    ),
    "LANGUAGE": _LANGUAGE,
    "PLAYED": (
        "(?:(?:du |de la |de l'|de )?(?:accordéon|banjo|basse|batterie|clarinette|cornemuse|flûte|guitare|harmonica|"
        "harpe|orgue|piano|"
        "saxophone|trombone|trompette|ukulélé|violon|violoncelle)|(?:au |aux |à la |à l')?(?:badminton|basket(?:-?ball)?|"
        "cartes|échecs|foot(?:ball)?|golf|handball|hockey|jeux vidéo|pétanque|ping-pong|poker|rugby|soccer|squash|"
        "tennis|volley(?:-?ball)?))"
    ),
    # What a person can instruct an assistant to do.
    "DO": (
        "(?i:réponds|répondez|écris|écrivez|utilise|utilisez|donne|donnez|explique|expliquez|montre|montrez|ajoute|ajoutez|"
        "demande|demandez|parle|parlez|garde|gardez|évite|évitez|liste|listez|formate|formatez|calcule|calculez|dis|dites|"
        "envoie|envoyez|mentionne|mentionnez|vérifie|vérifiez|traduis|traduisez|fais|faites|préfère|préférez|informe|"
        "informez|confirme|confirmez|réserve|réservez|achète|achetez|commande|commandez|appelle|appelez|propose|proposez|"
        "recommande|recommandez|inclus|incluez|tutoie|tutoyez|vouvoie|vouvoyez)"
    ),
    "EVER": "(?:toujours|jamais|systématiquement|dorénavant|désormais|à l'avenir|à partir de maintenant)",
}

NAMES: Mapping[str, str] = {
    "femme": "wife", "épouse": "wife", "mari": "husband", "époux": "husband", "compagne": "partner",
    "compagnon": "partner", "copine": "girlfriend", "copain": "boyfriend", "fille": "daughter", "fils": "son",
    "mère": "mother", "maman": "mother", "père": "father", "papa": "father", "sœur": "sister", "soeur": "sister",
    "frère": "brother", "grand-mère": "grandmother", "tante": "aunt", "oncle": "uncle", "neveu": "nephew",
    "nièce": "niece", "ami": "friend", "amie": "friend", "chien": "dog", "chienne": "dog", "chat": "cat",
    "chatte": "cat", "cheval": "horse", "chef": "boss", "patron": "boss", "voisin": "neighbour",
    "voisine": "neighbour", "collègue": "colleague", "couleur": "color", "plat": "dish", "nourriture": "food",
    "film": "movie", "livre": "book", "chanson": "song", "groupe": "band", "animal": "animal", "sport": "sport",
    "ville": "city", "pays": "country", "matière": "subject", "boisson": "drink", "musique": "music",
    "série": "series", "auteur": "author", "fruit": "fruit", "jeu": "game", "équipe": "team", "saison": "season",
    "acteur": "actor", "émission": "show", "dessert": "dessert",
}  # fmt: skip
"""French words of relations, and how their names have them, so that a fact is one in any language."""
