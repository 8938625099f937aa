"""Words of a document for a text index, and words of a question in the same form.

An index has these fields of words (`FIELDS`, with the weight of a match in each):

* `title`, `headings`, `description`, `links` (texts of links in the main part), `images` (their alternative texts),
  `literals` (texts of the page's data), `body` (the main text), `rest` (what else the page says: menus, teasers,
  comments) and `address` (the path of the URL). Headings and texts of links are in `body` or `rest` too.
* `endings`: in languages that write compounds as one word, stems of long words, reversed, each once:
  `Lederhandschuhe` → `huhcsdnahredel`, so that a prefix of it finds the compound by its last part.
* `stems`: stems that differ from the page's words, each once, without positions. Only in those languages and in the
  ones that write particles before a word (`stems.INDEXED`): a page has 2,000 words, and to split them a second time
  costs as much as the rest of the analysis. Forms of a word in all other languages begin with its stem, so a question
  finds them in the vocabulary of the index: words with that beginning that have the same stem (`stems.stemmer`).

A document goes in by `analyse_document` (or `analyse_fields`, for all fields at once), a question by `analyse_query`:

>>> analyse_query("Häuser", "de")
(QueryWord(text='Häuser', tokens=('hauser',), stems=('haus',), ending='suah', parts=(), grams=False),)

What to search for a `QueryWord`, the best match first:

1. `tokens` in the fields of words: one term, or several that must stand next to each other in this order (a phrase).
   That is exact but for case, accents and the like. Several occur for `state-of-the-art`, for a text in quotes, and for
   scripts without blanks, where tokens are n-grams (`grams`): 日本語 → `日本`, `本語`.
2. forms of the word: terms that begin with one of `stems` and have the same stem; and any of `stems` in the field
   `stems`, or as a term in the fields of words (a page that has the stem itself as a word does not repeat it).
3. a term that begins with `ending` in the field `endings` (empty = the word cannot be the end of a compound).
4. `parts`, for a run of text without blanks: each is a phrase like `tokens`. Most of them should match. Words of
   content come first; there are none if the run is too short to be divided.

With `grams`, a prefix query and corrections of spelling make no sense, with one exception: a single character (one
token of one character) is found by the prefix query for it, since every character of a document begins a token.
`scripts.readable` makes a token of the index readable, for suggestions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec
import tantivy

from quadloom.documents.words.languages import candidates, language_of
from quadloom.documents.words.scripts import is_gram, normalised, splittable, splittable_utf8
from quadloom.documents.words.stems import COMPOUNDING, INDEXED, LETTERS, stemmer
from quadloom.model.text import AnalysedText

FIELDS: dict[str, float] = {
    "title": 3.0, "headings": 2.0, "description": 1.5, "literals": 1.5, "links": 1.0, "images": 0.8, "body": 1.0,
    "rest": 0.1, "address": 0.5,
}  # fmt: skip
"""Fields of words, with the weight of a match in each."""
STEM_FIELDS = ("stems", "endings")
SCHEMA = 3
"""Version of this analysis. An index made by another one does not fit the questions: it must be rebuilt."""

LONGEST = 64  # letters of a word; longer ones are no words
_SHORTEST_ENDING = 4  # letters
# Only questions need these. A crawl has none, and large classes take milliseconds to compile.
_PLACES = r"[\u30a1-\u30fa\u30fc-\u30ff]{2,}|[\u2e80-\u2fdf\u3005-\u3007\u3400-\u9fff\uf900-\ufaff]+"
_HIRAGANA = "[\u3041-\u309f]"
_HANGUL = "[\uac00-\ud7a3]+\\Z"
_PARTICLES = (
    "은 는 이 가 을 를 에 의 도 만 로 와 과 나 야 께 에서 에게 으로 까지 부터 처럼 보다 한테 이나 라도 "
    "마다 밖에 조차 이란 란 에는 에도 에서는 으로는 에서의 으로서 로서 으로써 로써 들 들이 들은 들을 들의 "
    "하다 하는 하고 하기 하면 한다 합니다 했다 했습니다 이다 입니다 이며 이고 인 된 되는 됩니다 되다 할 한"
)
_KOREAN_PARTICLES = tuple(sorted(_PARTICLES.split(), key=len, reverse=True))


class QueryWord(msgspec.Struct, frozen=True):
    """One word or phrase of a question; see the module."""

    text: str
    tokens: tuple[str, ...]
    stems: tuple[str, ...] = ()
    ending: str = ""
    parts: tuple[tuple[str, ...], ...] = ()
    grams: bool = False


def analyse_document(text: str, language: str = "") -> AnalysedText:
    """Analyse a text that is the whole body of a page. `language`: what the page says, may be empty."""
    return analyse_fields({"body": text}, language)


def analyse_fields(fields: Mapping[str, str], language: str = "") -> AnalysedText:
    """Analyse a page's texts by field. The language is guessed from the longest if the page does not say it."""
    longest = max(fields.values(), key=len, default="")
    language = language.lower().replace("_", "-").partition("-")[0]
    if not language or not longest.isascii():
        language = language_of(longest, language)
    foreign = [(name, text) for name, text in fields.items() if not text.isascii()]
    rewritten = {name: new for name, text in foreign if (new := splittable_utf8(text)) is not None}
    analysed = AnalysedText(language, rewritten)
    stems = stemmer(language) if language in INDEXED else None
    if stems is None:
        return analysed
    # The body holds headings and texts of links already.
    texts = [analysed.searched(name, text) for name, text in fields.items() if name not in _IN_BODY]
    found = stems.of_text(" ".join(texts))
    return AnalysedText(language, rewritten, " ".join(found.stems), " ".join(found.endings))


_IN_BODY = frozenset(("headings", "links", "address"))


def analyse_query(words: str, language: str | None = None, *, languages: tuple[str, ...] = ()) -> tuple[QueryWord, ...]:
    """One `QueryWord` for each part of `words` that stands between blanks. `language`: that of the question, if it is
    known; else stems are those of every one of `languages` (say, the most frequent of the index) that uses the script
    of the question. Without either, Latin text is taken for English."""
    return tuple(
        term for word in words.split() if (term := analyse_phrase(word, language, languages=languages)) is not None
    )


def analyse_phrase(text: str, language: str | None = None, *, languages: tuple[str, ...] = ()) -> QueryWord | None:
    """The same for a text in quotes, as one term; None if it has no words."""
    tokens = query_tokens(text)
    if not tokens:
        return None
    grams = is_gram(tokens[-1])
    if grams:
        return QueryWord(text, tokens, parts=_parts(text, tokens), grams=True)
    if len(tokens) > 1 or not LETTERS.fullmatch(tokens[0]):
        return QueryWord(text, tokens)
    chosen = (language,) if language else candidates(text) or languages or ("en",)
    stems, ending = _stems(text, tokens[0], chosen)
    return QueryWord(text, tokens, stems, ending)


def query_tokens(text: str) -> tuple[str, ...]:
    """Tokens of a question: those of a document, without the last one of a run of n-grams, which says that the run
    ends there."""
    found = tokens_of(text)
    if len(found) > 1 and is_gram(found[-1]) and found[-2] != found[-1] and found[-2].endswith(found[-1]):
        del found[-1]
    return tuple(found)


def tokens_of(text: str) -> list[str]:
    """All tokens of a document's text, as the index has them."""
    return word_analyzer().analyze(splittable(text))


@lru_cache(maxsize=1)
def word_analyzer() -> tantivy.TextAnalyzer:
    """Splits and folds a text that `splittable` has prepared."""
    # The simple tokenizer, since one by regular expression costs three times as much CPU a page (.71 for .26 ms).
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(LONGEST), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        words = words.filter(step)
    return words.build()


def _stems(text: str, token: str, languages: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Stems of a word by each language, without the word itself; and the reversed beginning for `endings`."""
    found: dict[str, None] = {}
    ending = ""
    word = max(LETTERS.findall(text.lower()), key=len, default=token)
    for language in languages:
        known = stemmer(language)
        stem = known.stem(word) if known is not None else ""
        if not stem:
            continue
        found[stem] = None
        if language in COMPOUNDING and not ending and len(stem) >= _SHORTEST_ENDING:
            ending = stem[::-1]
    # A page that says `houses` has the stem `hous`, also for the question `hous`: the word itself may be a stem.
    return tuple(found or {token: None}), ending


def _parts(text: str, tokens: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Parts of a run that may stand apart in a document: words in kanji and katakana, a Korean word without its
    particle; else pairs."""
    if re.search(_HANGUL, text):
        word = _without_particle(text)
        bare = query_tokens(word) if word != text else ()
        return (bare,) if bare else ()  # a particle after a sign, as in `+`의, has no word before it
    others = [(token,) for token in tokens if not is_gram(token)]
    if re.search(_HIRAGANA, text):
        found = [query_tokens(part) for part in re.findall(_PLACES, normalised(text))]
        return tuple(dict.fromkeys(part for part in (*others, *found) if part != tokens))
    return tuple((token,) for token in dict.fromkeys(tokens)) if len(tokens) > 2 or others else ()


def _without_particle(word: str) -> str:
    for particle in _KOREAN_PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= (1 if len(particle) > 1 or len(word) > 2 else 2):
            return word[: -len(particle)]
    return word
