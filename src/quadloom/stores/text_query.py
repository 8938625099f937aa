"""The parser of what people type into a search box, which never fails; and the snippet that shows why a page matched.

`words "a phrase" prefix* field:word -not`. Text that does not fit is taken as words, since a syntax error helps nobody;
a missing closing quote is assumed at the end. At most `MAX_CLAUSES` parts count, so no text becomes a costly query.
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

from quadloom.analysis.words import FIELDS as ANALYSED_FIELDS
from quadloom.analysis.words import query_tokens

MAX_CLAUSES = 32
MAX_TEXT = 1000
MIN_PREFIX = 2  # characters; a shorter prefix would match half of the dictionary
OPEN, CLOSE = "\x02", "\x03"
FIELDS = {
    "title": "title", "headings": "headings", "description": "description", "links": "links", "images": "images",
    "body": "body", "text": "body", "data": "literals", "literals": "literals", "site": "site",
    "host": "host", "lang": "language", "language": "language", "kind": "kind", "type": "types", "types": "types",
    "vocabulary": "vocabularies",
}  # fmt: skip
WORD_FIELDS = tuple(ANALYSED_FIELDS)  # other fields are compared as a whole

_PART = re.compile(r'(-?)(?:(\w+):)?(?:"([^"]*)"?|([^\s"]+))')
_WORD = re.compile(r"\w+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Clause(msgspec.Struct, frozen=True):
    """`field` empty = any of `WORD_FIELDS`. `words` are folded; for other fields `value` is compared as it is."""

    words: tuple[str, ...]
    value: str = ""
    field: str = ""
    prefix: bool = False
    negated: bool = False


def parse(text: str) -> tuple[Clause, ...]:
    """All clauses must match. Words in quotes, or joined by a hyphen or the like, are a phrase."""
    clauses: list[Clause] = []
    for minus, name, phrase, bare in _PART.findall(text[:MAX_TEXT]):
        field = FIELDS.get(name.lower(), "")
        value = phrase or bare
        if name and not field:
            value = f"{name} {value}"  # an unknown field is a word like any other
        words = words_of(value)
        prefix = bare.endswith("*") and bool(words) and len(words[-1]) >= MIN_PREFIX
        if words or (field and field not in WORD_FIELDS and value):
            clauses.append(Clause(words, value.rstrip("*") if bare else value, field, prefix, bool(minus)))
    return tuple(clauses[:MAX_CLAUSES])


def fold(text: str) -> str:
    """Lower case, without accents: `Café` and `cafe` are one word."""
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def words_of(text: str) -> tuple[str, ...]:
    return query_tokens(text)


def snippet(text: str, clauses: tuple[Clause, ...], *, length: int = 240) -> str:
    """The part of `text` with most of the words, marked by `OPEN` and `CLOSE`; its beginning if there are none."""
    places = _places(text, clauses)
    start = _best_start(places, length)
    if start > 0:
        blank = text.find(" ", start)
        start = blank + 1 if 0 <= blank < start + 30 else start
    end = min(len(text), start + length)
    parts: list[str] = ["… "] if start else []
    position = start
    for begin, stop in places:
        if begin >= position and stop <= end:
            parts += (_CONTROL.sub(" ", text[position:begin]), OPEN, text[begin:stop], CLOSE)
            position = stop
    parts.append(_CONTROL.sub(" ", text[position:end]))
    if end < len(text):
        parts.append(" …")
    return "".join(parts).strip()


def _places(text: str, clauses: tuple[Clause, ...]) -> list[tuple[int, int]]:
    wanted = {word for c in clauses if not c.negated and c.field in ("", *WORD_FIELDS) for word in c.words}
    prefixes = tuple(c.words[-1] for c in clauses if c.prefix and not c.negated)
    if not wanted and not prefixes:
        return []
    # Offsets in the folded text are offsets in the text, and searching it costs a twentieth of folding each word.
    folded = text.lower() if text.isascii() else _aligned(text)
    found = _found(folded, wanted, prefixes)
    if _UNALIGNED in folded:
        found |= _unaligned(text, folded, wanted, prefixes)
    return sorted(found)


def _aligned(text: str) -> str:
    """Folded letter by letter. `translate` is slow, so it gets only what is not ASCII."""
    parts: list[str] = []
    position = 0
    for run in _NOT_ASCII.finditer(text):
        parts += (text[position : run.start()].lower(), run.group().translate(_FOLDED))
        position = run.end()
    return "".join((*parts, text[position:].lower()))


def _unaligned(text: str, folded: str, wanted: set[str], prefixes: tuple[str, ...]) -> set[tuple[int, int]]:
    """Words with a letter that folds to several, such as ß: there are few, and only these are folded one by one."""
    found = set()
    for place in _UNALIGNED_WORD.finditer(folded):
        for match in _WORD.finditer(text, *place.span()):
            word = fold(match.group())
            if word in wanted or (prefixes and word.startswith(prefixes)):
                found.add(match.span())
    return found


def _found(folded: str, wanted: set[str], prefixes: tuple[str, ...]) -> set[tuple[int, int]]:
    """Spans of these words in a folded text, as whole words; an unaligned letter next to one belongs to its word."""
    found = set()
    for word in (*wanted, *prefixes):
        begin = folded.find(word)
        while begin >= 0:
            end = begin + len(word)
            match = _FOLDED_WORD.match(folded, end)
            if (not begin or not _FOLDED_WORD.match(folded, begin - 1)) and (match is None or word in prefixes):
                found.add((begin, match.end() if match is not None else end))
            begin = folded.find(word, end)
    return found


class _Folded(dict[int, str]):
    """Character → its folded form if that is one character too, filled as characters occur.

    A character outside of words may become any other such one: an ellipsis, folded to three dots, becomes a blank.
    """

    def __missing__(self, code: int) -> str:
        folded = fold(chr(code))
        if len(folded) != 1:
            folded = _UNALIGNED if _WORD.search(chr(code) + folded) else " "
        self[code] = folded
        return folded


_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_UNALIGNED = "\uffff"
_FOLDED = _Folded()
_FOLDED_WORD = re.compile(rf"[\w{_UNALIGNED}]+")
_UNALIGNED_WORD = re.compile(rf"\w*{_UNALIGNED}[\w{_UNALIGNED}]*")


def _best_start(places: list[tuple[int, int]], length: int) -> int:
    """Start of the window with most matches, some words before the first of them."""
    best, best_count, right = 0, 0, 0
    for left, (begin, _) in enumerate(places):
        while right < len(places) and places[right][1] <= begin + length - 40:
            right += 1
        if right - left > best_count:
            best, best_count = begin, right - left
    return max(0, best - 40)
