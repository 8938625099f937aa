"""What the forms of a word have in common, by language.

Snowball's stemmers come with tantivy. Hindi and Hebrew have light ones of our own: endings, and the particles that
Hebrew writes together with a word. Stems are for a field of their own: words of the text stay as they are.

A page has some 500 different words, and a new page few that were not seen before: a stem is looked up (50 ns), seldom
computed (5 µs). Words are taken as bytes, because splitting bytes costs a third of splitting characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import tantivy

from quadloom.documents.words.scripts import normalised

COMPOUNDING = frozenset(
    ("de", "nl", "sv", "da", "no", "nb", "nn", "fi", "hu")
)  # languages that write compounds as one word
INDEXED = COMPOUNDING | {"ar", "he", "iw"}  # whose stems are in the index; see `words`
LONG = 9  # letters; a shorter word is seldom a compound
_MOST_WORDS = 100_000  # looked up without computing; some 15 MB

_SNOWBALL = {
    "ar": "arabic", "da": "danish", "nl": "dutch", "en": "english", "fi": "finnish", "fr": "french", "de": "german",
    "el": "greek", "hu": "hungarian", "it": "italian", "no": "norwegian", "nb": "norwegian", "nn": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "es": "spanish", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip
_SPLIT = bytes(code if code >= 0x80 or chr(code).isalnum() else 0x20 for code in range(256))
# Signs that are part of a word, though Python does not count them as letters, are those of the scripts of India.
LETTERS = re.compile("(?:[^\\W\\d_]|[\u0900-\u0963\u0970-\u09e5\u09f0-\u0dff])+")
# Endings of Hindi nouns, adjectives and verbs, the longest first; the signs as `scripts` writes them.
_HINDI_ENDINGS = (
    "ाओं ियों ियां ियाँ ुओं ुएं ों ें ीं ाएं ाएँ ां ाँ ाना ाने ानी ता ती ते ना नी ने कर ाकर ूंगा ूंगी ेगा ेगी ेंगे ाया ायी ाई ाए ओं एं ा ि ी ु ू े ै ो ौ"
)
_HINDI = tuple(sorted(_HINDI_ENDINGS.split(), key=len, reverse=True))
_HEBREW_PARTICLES = "והבכלמש"
_HEBREW_ENDINGS = ("יות", "ימ", "ות", "יה", "ית", "ה", "ת", "י")
_ARABIC_PARTICLES = ("وال", "فال", "بال", "كال", "ولل", "لل", "ال")
_ARABIC_ENDINGS = (("ات", "ون", "ين", "ها", "يه"), ("ه", "ي"))  # one of each; letters as `scripts` writes them
_ARABIC_ROOT = 3  # letters


class Stems:
    """What a text adds to its words: stems that differ from them, and long stems reversed."""

    __slots__ = ("endings", "stems")

    def __init__(self) -> None:
        self.stems: set[str] = set()
        self.endings: set[str] = set()


class Stemmer:
    """Stems of one language. Not for several threads at a time."""

    def __init__(self, language: str) -> None:
        self._stem = _function(language)
        self._compounds = language in COMPOUNDING
        self._plain: set[bytes] = set()  # words that add nothing
        self._known: dict[bytes, Stems] = {}

    def of_text(self, text: str) -> Stems:
        """Of all words of a text."""
        found = Stems()
        known, stems, endings = self._known, found.stems, found.endings
        for word in set(text.encode("utf-8", "replace").translate(_SPLIT).split()) - self._plain:
            entry = known.get(word)
            if entry is None:
                entry = self._learn(word)
            stems |= entry.stems
            if entry.endings:
                endings |= entry.endings
        return found

    def stem(self, word: str) -> str:
        """Of one word, folded as the index folds it."""
        return folded(self._stem(normalised(word.lower())))

    def _learn(self, written: bytes) -> Stems:
        entry = Stems()
        for word in LETTERS.findall(written.decode("utf-8", "replace").lower()):
            stem = self.stem(word)
            if stem and stem != folded(word):
                entry.stems.add(stem)
            if self._compounds and len(stem) >= LONG:
                entry.endings.add(stem[::-1])
        if len(self._known) + len(self._plain) > _MOST_WORDS:
            self._known.clear()
            self._plain.clear()
        if entry.stems or entry.endings:
            self._known[written] = entry
        else:
            self._plain.add(written)
        return entry


@lru_cache(maxsize=64)
def stemmer(language: str) -> Stemmer | None:
    """None if there is no stemmer for the language."""
    known = language in _SNOWBALL or language in ("hi", "he", "iw")
    return Stemmer(language) if known else None


def folded(word: str) -> str:
    """Lower case without Latin accents, by the same code as words of the index."""
    return word.lower() if word.isascii() else "".join(_fold().analyze(word))


@lru_cache(maxsize=1)
def _fold() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold()).build()


def _function(language: str) -> Callable[[str], str]:
    if language == "hi":
        return _hindi
    if language == "ar":
        return _arabic
    if language in ("he", "iw"):
        return _hebrew
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer(_SNOWBALL[language]))
    snowball = analyzer.build().analyze

    def stem(word: str) -> str:
        return "".join(snowball(word))

    return stem


def _arabic(word: str) -> str:
    """Without article, `and`, and one ending each of number and gender. Snowball's gives forms different stems."""
    for particle in _ARABIC_PARTICLES:
        if word.startswith(particle) and len(word) - len(particle) >= _ARABIC_ROOT - 1:
            word = word[len(particle) :]
            break
    for endings in _ARABIC_ENDINGS:
        for ending in endings:
            if word.endswith(ending) and len(word) - len(ending) >= _ARABIC_ROOT:
                word = word[: -len(ending)]
                break
    return word


def _hindi(word: str) -> str:
    for ending in _HINDI:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word[: -len(ending)]
    return word


def _hebrew(word: str) -> str:
    for ending in _HEBREW_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    while len(word) > 3 and word[0] in _HEBREW_PARTICLES:
        word = word[1:]
    return word
