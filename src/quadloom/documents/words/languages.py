"""The language of a text: what its page says, checked against the script; else a guess.

Most scripts tell the language, or nearly so. For the Latin, Cyrillic and Arabic scripts the most frequent short words
decide, or letters that only one of their languages has. A guess takes some 50 µs, and is only as good
as its purpose needs: it chooses a stemmer, and fills the facet of pages that do not say their language.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from quadloom.documents.words.scripts import special_bytes

SAMPLE = 1000  # characters; the beginning of a page is as good as its whole for this purpose
_FOREIGN = 0.15  # share of characters of another script from which a text is not in Latin letters
_FEWEST_HITS = 3  # short words of a language that must occur before a guess is made

_SHORT_WORDS = {
    "en": "the of and to in is that for it with as was on are be this by from or have not you which an at",
    "de": "der die und das ist nicht mit den von ein eine zu auf für im auch sich dem des als wird oder sind wie",
    "fr": "le la les et des est une dans pour que qui sur avec pas plus par au du ce cette sont nous vous ou ne",
    "es": "el la los las y que en un una por con para es del se no como más su al lo pero sus este está",
    "pt": "o os as e que em um uma por com para é do da não se como mais dos das ao na no são você também",
    "it": "il di che la le e un una per con è non del della i si gli dei da sono come più nel anche alla questo",
    "nl": "de het een en van is dat niet te op voor met zijn aan ook die er om bij wordt naar als uit deze dit",
    "sv": "och att det som en på är av för med den till inte har de ett om jag från kan var eller ska vi också",
    "da": "og at det som en på er af for med den til ikke har de et om jeg fra kan var eller skal vi også blev",
    "no": "og å det som en på er av for med den til ikke har de et om jeg fra kan var eller skal vi også ble",
    "fi": "ja on ei että se oli mutta kun joka myös ovat hän tai niin kuin mukaan sekä vain ole sen olla voi jos ne",
    "hu": "a az és hogy nem is egy van volt de meg csak ez már mint el ha vagy lehet minden azt kell még után",
    "ro": "și în de la a cu nu pe că un o care mai din este sau sunt pentru fost după acest prin lui ca",
    "tr": "ve bir bu da de için ile olarak çok daha olan gibi en ne kadar var ama veya her sonra ya olduğu",
    "pl": "i w na z nie się do że jest to o jak po co od za przez są ale dla tym czy jego może lub oraz",
    "cs": "a v na se je že z do to s o i jako za pro ve jsou by ale nebo byl po od při který jeho tak",
    "sk": "a v na sa je že z do to s o aj ako za pre vo sú by ale alebo bol po od pri ktorý jeho tak",
    "sl": "in je na v se za da ki so z ne pa po tudi kot ali pri lahko bi iz od še bil ter",
    "hr": "i u je na se za da su od s ne kao ili što koji iz te po ali biti bio kako sve može",
    "ca": "el la els les i que en un una per amb és del no es com més dels al ha són seva aquest també",
    "id": "yang dan di dari untuk dengan ini itu pada adalah ke tidak dalam akan juga oleh atau sebagai bisa ada",
    "vi": "và của là có cho không được một trong các với này để những khi người từ đã như về",
    "et": "ja on ei et see oli mis ka kui aga või oma ta nii mida seda kes ning veel saab pole tema",
    "lt": "ir yra kad į iš su ne tai kaip buvo bet apie jis už po tik ar nuo savo dar taip jau per",
    "lv": "un ir ka no ar uz par kas nav tas bet arī lai tika pie kā viņš pēc vai līdz šo tā",
    "eu": "eta da ez bat ere du dira baina izan zen hau duen egin beste edo hori baino dago dute den",
    "ru": "и в не на что с как это по он из но за так от все к было или для его бы был еще при",
    "uk": "і в не на що з як це до та він від але за є про або для його бути був також які під",
    "bg": "и на в да се за е от са че с не по като при до или но това който има ще към този както",
    "sr": "и у је на се за да су од с не као или што који из те по али бити био како све може",
    "be": "і ў не на што з як гэта да па ён ад але за для яго быў таксама які пры ці",
    "mk": "и на во да се за е од со не по како при до или но тоа кој има ќе кон овој што",
    "ar": "في من على أن إلى هذا هذه التي الذي عن مع كان لا ما هو أو كل قد بعد بين",
    "fa": "و در به از که این را با است برای آن یک خود تا بر نیز شده می شود هم",
    "ur": "کے کی میں اور ہے کا سے کو پر نے یہ ہیں کہ کر اس ایک بھی جو نہیں تھا",
}
_LANGUAGES: dict[str, tuple[str, ...]] = {}
_gathered: defaultdict[str, list[str]] = defaultdict(list)
for _language, _words in _SHORT_WORDS.items():
    for _word in _words.split():
        _gathered[_word].append(_language)
_LANGUAGES = {word: tuple(languages) for word, languages in _gathered.items()}

_CYRILLIC = frozenset(("ru", "uk", "bg", "sr", "be", "mk", "kk", "ky", "mn", "tg", "tt", "ba", "uz"))
_ARABIC = frozenset(("ar", "fa", "ur", "ps", "ku", "ckb", "ug", "sd", "az", "pa", "ks"))
_INDIC = frozenset(("hi", "mr", "ne", "sa", "bh", "mai", "kok", "sd", "doi", "ks"))
# (first and last character, languages that use the script, the one to assume)
_SCRIPTS: tuple[tuple[str, str, frozenset[str], str], ...] = (
    ("\u0370", "\u03ff", frozenset(("el", "grc")), "el"),
    ("\u0400", "\u052f", _CYRILLIC, ""),
    ("\u0530", "\u058f", frozenset(("hy",)), "hy"),
    ("\u0590", "\u05ff", frozenset(("he", "yi", "iw", "lad")), "he"),
    ("\u0600", "\u077f", _ARABIC, ""),
    ("\u0900", "\u097f", _INDIC, "hi"),
    ("\u0980", "\u09ff", frozenset(("bn", "as", "mni")), "bn"),
    ("\u0a00", "\u0a7f", frozenset(("pa",)), "pa"),
    ("\u0a80", "\u0aff", frozenset(("gu",)), "gu"),
    ("\u0b00", "\u0b7f", frozenset(("or",)), "or"),
    ("\u0b80", "\u0bff", frozenset(("ta",)), "ta"),
    ("\u0c00", "\u0c7f", frozenset(("te",)), "te"),
    ("\u0c80", "\u0cff", frozenset(("kn", "tcy")), "kn"),
    ("\u0d00", "\u0d7f", frozenset(("ml",)), "ml"),
    ("\u0d80", "\u0dff", frozenset(("si",)), "si"),
    ("\u0e00", "\u0e7f", frozenset(("th",)), "th"),
    ("\u0e80", "\u0eff", frozenset(("lo",)), "lo"),
    ("\u0f00", "\u0fff", frozenset(("bo", "dz")), "bo"),
    ("\u1000", "\u109f", frozenset(("my", "shn", "mnw")), "my"),
    ("\u10a0", "\u10ff", frozenset(("ka",)), "ka"),
    ("\u1200", "\u139f", frozenset(("am", "ti")), "am"),
    ("\u1780", "\u17ff", frozenset(("km",)), "km"),
    ("\u3040", "\u30ff", frozenset(("ja", "ain", "ryu")), "ja"),
    ("\u3400", "\u9fff", frozenset(("zh", "ja", "yue", "wuu", "lzh", "ko", "cmn")), "zh"),
    ("\uac00", "\ud7a3", frozenset(("ko",)), "ko"),
)
_LETTERS = re.compile(r"[^\W\d_]+")


def language_of(text: str, said: str = "") -> str:
    """Primary subtag of a text's language, empty if unknown. `said`: the page's own tag, which counts unless the text
    is written in a script that its language does not use."""
    said = said.lower().replace("_", "-").partition("-")[0]
    sample = text[:SAMPLE]
    leads = special_bytes(sample) if not sample.isascii() else b""
    if len(leads) < _FOREIGN * len(sample):
        return said or _by_short_words(sample)
    languages, usual = _script_of(sample)
    if not languages or said in languages:
        return said
    return usual or _by_short_words(sample, languages)


def short_words(language: str) -> frozenset[str]:
    """The most frequent words of a language, which say nothing about the subject of a text; empty if it is unknown."""
    return frozenset(_SHORT_WORDS.get(language, "").split())


def candidates(text: str) -> tuple[str, ...]:
    """Languages in which a question might be: one for most scripts, none for Latin letters, where anything goes."""
    leads = special_bytes(text) if not text.isascii() else b""
    if not leads:
        return ()
    languages, usual = _script_of(text)
    if usual:
        return (usual,)
    return tuple(language for language in _SHORT_WORDS if language in languages)


# Words with which people ask, besides the short words: they say nothing about the page that is looked for.
_ASKING = {
    "en": "how what where when who whom whose why can could should would do does did i me my we our your he she his "
    "her they their there some any about than then these those has had were will may must if but so into out up",
    "de": "wo was wie wer wen wann warum welche welcher welches kann können ich mein meine wir unser unsere über etwas "
    "gibt es einen einem eines zum zur bei nach",
    "fr": "comment quoi où quand qui pourquoi puis je mon ma mes notre nos il elle quel quelle à un",
    "es": "cómo qué dónde cuándo quién por puedo mi mis nuestro nuestra cuál hay sobre",
    "it": "come cosa dove quando chi perché posso mio mia nostro nostra quale su",
    "fi": "miten mitä missä mistä milloin kuka miksi voin voisin minun meidän mikä onko",
    "ru": "где кто когда почему зачем какой какая какие можно я мы мой наш наша наши у о про ли",
    "ar": "أين متى كيف ماذا لماذا هل ثم عند و",
    "hi": "के का की में और है से को पर यह हैं कि ने एक भी हो था थे थी तथा क्या कहाँ कैसे कब कौन क्यों मैं हम हमारा हमारी जो वह",
    "ko": "그리고 그 이 저 수 것 우리 하고 및 또는 어디 어디에서 무엇 무엇인가요 어떻게 왜 있는 있나요",
}
_FUNCTION_WORDS: defaultdict[str, set[str]] = defaultdict(set)
for _words_of in (_SHORT_WORDS, _ASKING):
    for _language, _words in _words_of.items():
        for _word in _words.split():
            _FUNCTION_WORDS[_word].add(_language)


def is_function_word(word: str, languages: tuple[str, ...]) -> bool:
    """Whether a word in lower case is one of the most frequent ones, such as `the` or `und`, in one of these languages
    or in English: a question need not find it."""
    known = _FUNCTION_WORDS.get(word)
    return known is not None and ("en" in known or not set(languages).isdisjoint(known))


def _script_of(sample: str) -> tuple[frozenset[str], str]:
    """Languages of the most frequent script, and the one to assume. Kana decide for Japanese, even among more Han."""
    counts: Counter[int] = Counter()
    for character, times in Counter(sample).items():
        if character >= "\u0370":
            for number, (first, last, _, _) in enumerate(_SCRIPTS):
                if first <= character <= last:
                    counts[number] += times
                    break
    if not counts:
        return frozenset(), ""
    best = counts.most_common(1)[0][0]
    if _SCRIPTS[best][3] == "zh" and counts[best - 1] * 20 > counts[best]:
        best -= 1
    return _SCRIPTS[best][2], _SCRIPTS[best][3]


def _by_short_words(sample: str, allowed: frozenset[str] = frozenset()) -> str:
    """The language of which most short words occur; one that few others share counts more."""
    scores: defaultdict[str, float] = defaultdict(float)
    hits: defaultdict[str, int] = defaultdict(int)
    short = [word for word in _LETTERS.findall(sample.lower()) if word in _LANGUAGES]
    for word, times in Counter(short).items():
        languages = _LANGUAGES[word]
        weight = min(times, 5) / len(languages)
        for language in languages:
            scores[language] += weight
            hits[language] += 1
    ranked = [language for language in scores if not allowed or language in allowed]
    best = max(ranked, key=lambda language: (scores[language], language), default="")
    return best if best and hits[best] >= _FEWEST_HITS else ""
