"""Pages that are about one thing and one aspect of it, and the questions that have exactly one of them in mind.

A page's title and sentences use two forms of its words; other words of the lexicon occur in passing, so that every word
is on many pages and only the pair names the page. Questions are exact, inflected (forms that the page does not have;
joined without a blank in scripts that write so), misspelt (one slip in one word), partial (the last word is not
finished) and long (a sentence as one asks a person). All of it follows from the seed.
"""

from __future__ import annotations

import random
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import msgspec

KINDS = ("exact", "inflected", "misspelt", "partial", "long")
_SENTENCES = 9
_SHORTEST_SLIP = 4  # letters
_SHARE_TYPED = 0.6  # of an unfinished word


class Lexicon(msgspec.Struct, frozen=True):
    """See the head of `lexicons.toml`."""

    name: str
    topics: tuple[str, ...]
    aspects: tuple[str, ...]
    titles: tuple[str, ...]
    own: tuple[str, ...]
    passing: tuple[str, ...]
    long: tuple[str, ...]
    spaces: bool = True
    slips: dict[str, str] = {}


class KnownPage(msgspec.Struct, frozen=True):
    url: str
    language: str
    title: str
    sentences: tuple[str, ...]

    @property
    def html(self) -> bytes:
        """As a small site would publish it, with the menu and footer that every page has."""
        paragraphs = "".join(f"<p>{' '.join(self.sentences[at : at + 3])}</p>" for at in range(0, _SENTENCES, 3))
        head = f'<meta charset="utf-8"><title>{self.title}</title>'
        menu = '<nav><a href="/">Start</a> <a href="/contact">Contact</a></nav>'
        foot = '<footer><a href="/imprint">Imprint</a></footer>'
        body = f"{menu}<main><h1>{self.title}</h1>{paragraphs}</main>{foot}"
        return f'<!doctype html><html lang="{self.language}"><head>{head}</head><body>{body}</body></html>'.encode()


class Question(msgspec.Struct, frozen=True):
    kind: str
    text: str
    url: str  # of the one right answer
    language: str


class KnownItems(msgspec.Struct, frozen=True):
    language: str
    pages: tuple[KnownPage, ...]
    questions: tuple[Question, ...]


def lexicons() -> dict[str, Lexicon]:
    found = tomllib.loads(Path(__file__).with_name("lexicons.toml").read_text(encoding="utf-8"))
    return msgspec.convert(found, dict[str, Lexicon])


def known_items(language: str, lexicon: Lexicon, *, seed: int = 1, questions: int = 40) -> KnownItems:
    """All pairs of topic and aspect as pages, and `questions` questions of each kind."""
    chance = random.Random(f"{seed} {language}")
    pairs = [(topic, aspect) for topic in lexicon.topics for aspect in lexicon.aspects]
    pages = tuple(_page(language, lexicon, chance, number, *pair) for number, pair in enumerate(pairs))
    asked = [
        Question(kind, text, pages[number].url, language)
        for number in chance.sample(range(len(pairs)), min(questions, len(pairs)))
        for kind, text in _questions(lexicon, chance, *pairs[number])
    ]
    return KnownItems(language, pages, tuple(asked))


def _page(language: str, lexicon: Lexicon, chance: random.Random, number: int, topic: str, aspect: str) -> KnownPage:
    words = _forms("a", topic) | _forms("b", aspect)
    others = [word for word in (*lexicon.topics, *lexicon.aspects) if word not in (topic, aspect)]
    sentences = [pattern.format(**words) for pattern in lexicon.own]
    while len(sentences) < _SENTENCES:
        x, y = (chance.choice(word.split("/")) for word in chance.sample(others, 2))
        sentences.append(chance.choice(lexicon.passing).format(x=x, y=y))
    chance.shuffle(sentences)
    title = chance.choice(lexicon.titles).format(**words)
    return KnownPage(f"http://{language}.example/{number}", language, title[0].upper() + title[1:], tuple(sentences))


def _forms(name: str, word: str) -> dict[str, str]:
    return {f"{name}{place}": form for place, form in enumerate(word.split("/"))}


def _questions(lexicon: Lexicon, chance: random.Random, topic: str, aspect: str) -> Iterator[tuple[str, str]]:
    words = _forms("a", topic) | _forms("b", aspect)
    a, b = words["a0"], words["b0"]
    yield "exact", f"{a} {b}"
    yield "inflected", f"{words['a2']}{' ' if lexicon.spaces else ''}{words['b2']}"
    if chance.random() < 0.5 or not _can_slip(lexicon, b):
        yield "misspelt", f"{_slip(lexicon, chance, a)} {b}" if _can_slip(lexicon, a) else f"{a} {b}"
    else:
        yield "misspelt", f"{a} {_slip(lexicon, chance, b)}"
    yield "partial", f"{a} {_unfinished(b)}"
    yield "long", chance.choice(lexicon.long).format(**words)


def _can_slip(lexicon: Lexicon, word: str) -> bool:
    return bool(lexicon.slips) or len(word) >= _SHORTEST_SLIP


def _slip(lexicon: Lexicon, chance: random.Random, word: str) -> str:
    """One letter left out, doubled, exchanged with the next or written wrong; for other scripts as listed."""
    for right, wrong in lexicon.slips.items():
        if word.startswith(right):
            return wrong + word.removeprefix(right)
    at = chance.randrange(1, len(word) - 1)
    before, letter, after = word[:at], word[at], word[at + 1 :]
    ways = [before + after, before + letter + letter + after, before + chance.choice(word) + after]
    if after and after[0] != letter:
        ways.append(before + after[0] + letter + after[1:])
    return chance.choice([way for way in ways if way != word])


def _unfinished(word: str) -> str:
    """The first three fifths of a word, at least two letters; never cut before a sign that belongs to its letter."""
    cut = max(2, round(len(word) * _SHARE_TYPED))
    while cut < len(word) and unicodedata.category(word[cut]).startswith("M"):
        cut += 1
    return word[:cut]
