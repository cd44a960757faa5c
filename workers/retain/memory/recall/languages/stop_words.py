"""Words of each language that do not indicate what a text is about, folded. They also show which language a text is in."""

from __future__ import annotations

from collections.abc import Mapping

STOP: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "de": """
            aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist bitte da
            damit dann das dass dein deine deinem deinen deiner dem den denn der des dich die dies diese diesem diesen
            dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer fur gegen gab gibt
            hab habe haben hat hatte hatten hattest heisst hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in
            ins ist ja jede jedem jeden jeder jedes jemand jetzt kann kein keine keinem keinen keiner konnen konnte machen
            mal man mehr mein meine meinem meinen meiner mich mir mit mochte muss musste nach nicht nichts noch nun nur ob
            oder ohne schon sehr seid sein seine seinem seinen seiner seit sich sie sind so soll sollen sollte sondern
            uber um und uns unser unsere unter vom von vor wann war waren warum was weil welche welchem welchen welcher
            welches wem wen wenn wer werden wessen wie wieder will wir wird wo wohin woher wurde wurden zu zum zur
            zwischen
        """,
        "fr": """
            a ai alors apres as au aucun aussi aux avait avant avec avez avoir avons bien c car ce ceci cela ces cet cette
            ceux chaque chez ci combien comme comment d dans de deja depuis des donc dont du elle elles en encore entre es
            est et etaient etait ete etes etre eu eux fait faut il ils j je jusqu l la le les leur leurs lui m ma mais me
            meme mes moi mon n ne ni non nos notre nous on ont ou par parce pas peu peut peux plus pour pourquoi qu quand
            que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont sous sur t ta tandis te tes toi ton
            tous tout toute toutes tres tu un une vers voici voila vos votre vous y
        """,
        "es": """
            a al algo alguien alguna algunas alguno algunos ante antes aqui asi aunque bajo bien cada como con contra cual
            cuales cuando cuanta cuantas cuanto cuantos de del desde donde dos e el ella ellas ellos en entre era eran
            eres es esa esas ese eso esos esta estaba estan estas este esto estos estoy fue fueron ha habia han has hasta
            hay he la las le les lo los mas me mi mis mucho muchos muy nada ni no nos nosotros nuestra nuestro o os otra
            otro para pero poco por porque puede puedo que quien quienes se sea segun ser si sin sobre solo son soy su sus
            tambien te tiene tienen tengo toda todas todo todos tu tus u un una unas uno unos usted ustedes va voy y ya yo
        """,
        "pt": """
            a ao aos aquela aquele aquilo as ate cada com como da das de dela dele deles depois do dos e ela elas ele eles
            em entre era eram essa essas esse esses esta estao estas estava este estes estou eu foi foram ha isso isto ja
            la lhe lhes mais mas me mesmo meu meus minha minhas muito muitos na nao nas nem no nos nossa nosso num numa o
            onde os ou para pela pelas pelo pelos pode por porque porquem qual quais quando quanta quantas quanto quantos
            que quem se sem ser sera seu seus so sobre sua suas tambem te tem temos tenho ter teu tinha toda todas todo
            todos tu tua um uma umas uns vai voce voces vou
        """,
        "it": """
            a abbiamo ad agli ai al alla alle allo anche ancora avere aveva c che chi ci ciascuno coi col come con contro
            cosa cui d da dagli dai dal dalla dalle dallo degli dei del dell della delle dello deve di dopo dove e ed era
            erano essere fa fino fra ha hai hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio molto
            ne negli nei nel nell nella nelle nello no noi non nostra nostro o ogni oppure per perche piu poi puo qual
            quale quali quando quanta quante quanti quanto quella quelle quelli quello questa queste questi questo qui se
            sei sempre senza si sia siamo sono sta stata stato su sua sue sugli sui sul sull sulla sulle suo suoi te ti
            tra tu tua tuo tutte tutti tutto un una uno va vi voi vostra vostro
        """,
        "nl": """
            aan al alle alles als altijd andere bent ben bij daar dan dat de deze die dit doen doet door dus een en er ge
            geen haar had hadden heb hebben hebt heeft hem hen het hier hij hoe hoeveel hun ik in is ja je jij jou jouw
            jullie kan kon kun kunnen maar me meer men met mij mijn moet moeten na naar niet niets nog nu of om omdat
            onder ons onze ook op over te tegen toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we
            wel welk welke werd werden wie wiens wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou
        """,
        "ru": """
            а без более бы был была были было быть в вам вас ваш ваша во вот все всего всех вы где да даже для до его ее
            если есть еще же за здесь и из или им их к как какая какие какои какую когда кого кому кто ли либо лучше
            меня мне много может мои мы на над надо нам нас наш не него нее неи нет ни них но ну о об один она они оно от
            очень по под после потому при про с себя сеичас со так такои там твои тебя тем то тогда того тоже только том
            ты у уже уметь чего чеи чем что чтобы чья эта эти этого этои этом этот это я
        """,
    }.items()
}
