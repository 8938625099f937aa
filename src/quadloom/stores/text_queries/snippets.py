"""The sentences of a page that show why it matched, with the words marked."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

from quadloom.documents.words.scripts import is_gram, normalised, readable
from quadloom.stores.protocols.text import Highlights
from quadloom.stores.text_queries.query_plan import Plan
from quadloom.stores.text_queries.text_query import fold

OPEN, CLOSE = "\x02", "\x03"
_LENGTH = 240
_BEFORE = 40  # characters before the first match, if its sentence begins further away
_LONGEST_LEAD = 120
_SHORTEST_STEM, _LONGEST_ENDING = 4, 5
_MARK = re.compile(f"[{OPEN}{CLOSE}]")
_WORD = re.compile(r"\w+")
_LINE_FEED = re.compile("\n")
_SHORTEST_SENTENCE = 60  # characters of a line without the sign at its end
_CLOSING = frozenset(".!?…。！？।")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]+")  # but not the end of a line
_LINE_END = re.compile(r"\s*\n\s*")
_CLOSED = frozenset(".!?…:;,·|。！？।")  # a line that ends so needs no mark before the next one
_SENTENCE_END = re.compile(r"(?:[.!?…]['\"”»)]*\s+|[。！？।]\s*|\n+|\s[|•·–—]\s)")


def highlights_of(plan: Plan) -> Highlights:
    """All ways to match a word are marked, but those in the middle of a compound."""
    words: set[str] = set()
    prefixes: set[str] = set()
    stems: set[str] = set()
    runs: set[str] = set()
    for wish in plan.wishes:
        for way in wish.ways:
            if way.field == "endings":
                continue
            if is_gram(way.tokens[-1]):
                runs.add(aligned(_joined(way.tokens)))
                continue
            *before, last = (aligned(readable(token)) for token in way.tokens)
            words.update(before)
            if way.field == "stems":
                stems.update((last,) if len(last) >= _SHORTEST_STEM else ())
            else:
                (prefixes if way.prefix else words).add(last)
    longest = sorted(runs, key=len, reverse=True)
    return Highlights(frozenset(words), tuple(sorted(prefixes)), tuple(sorted(stems)), tuple(longest))


def snippet(text: str, highlights: Highlights, *, length: int = _LENGTH) -> str:
    """The sentences with most of the words, marked by `OPEN` and `CLOSE`; the first sentences if there are none. Lines
    that are no sentences, as of lists and tables, are separated by ` · `."""
    places = _places(text, highlights)
    if places:
        start = _sentence_start(text, _best_start(_in_sentences(text, places), length))
    else:
        start = next((begin for begin, end in _lines(text) if _is_sentence(text, begin, end)), 0)
    end = min(len(text), start + length)
    if end < len(text):
        blank = text.rfind(" ", start + length // 2, end)
        end = blank if blank > 0 else end
    parts: list[str] = ["… "] if start else []
    position = start
    for begin, stop in places:
        if begin >= position and stop <= end:
            parts += (_CONTROL.sub(" ", text[position:begin]), OPEN, _CONTROL.sub(" ", text[begin:stop]), CLOSE)
            position = stop
    parts.append(_CONTROL.sub(" ", text[position:end]))
    if end < len(text):
        parts.append(" …")
    return _LINE_END.sub(_between_lines, "".join(parts).strip())


def offsets(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A snippet as plain text, and the begin and end of each match in it."""
    parts = _MARK.split(marked)
    ends = list(accumulate(map(len, parts)))
    return "".join(parts), tuple(zip(ends[:-1:2], ends[1::2], strict=False))


def _between_lines(end: re.Match[str]) -> str:
    before = end.string[: end.start()].rstrip(CLOSE)[-1:]
    return " " if before in _CLOSED else " · "


def _joined(tokens: tuple[str, ...]) -> str:
    """The text of overlapping pairs: 日本 本語 → 日本語."""
    text = readable(tokens[0])
    for token in map(readable, tokens[1:]):
        shared = next((size for size in range(len(token), 0, -1) if text.endswith(token[:size])), 0)
        text += token[shared:]
    return text


def _places(text: str, marked: Highlights) -> list[tuple[int, int]]:
    if not (marked.words or marked.prefixes or marked.stems or marked.runs):
        return []
    # Offsets in the folded text are offsets in the text, and searching it costs a twentieth of folding each word.
    folded = _aligned_text(text)
    found = _found(folded, marked)
    if UNALIGNED in folded:
        found |= _unaligned(text, folded, marked)
    places: list[tuple[int, int]] = []
    for begin, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not places or begin >= places[-1][1]:
            places.append((begin, end))
        elif end > places[-1][1]:  # runs may overlap
            places[-1] = (places[-1][0], end)
    return places


def aligned(text: str) -> str:
    """Folded letter by letter, so that offsets stay. `translate` is slow, so it gets only what is not ASCII."""
    if text.isascii():
        return text.lower()
    if len(text.encode("utf-8", "replace")) > _FOREIGN * len(text):
        return text.translate(_FOLDED)
    parts: list[str] = []
    position = 0
    for run in _NOT_ASCII.finditer(text):
        parts += (text[position : run.start()].lower(), run.group().translate(_FOLDED))
        position = run.end()
    return "".join((*parts, text[position:].lower()))


_aligned_text = lru_cache(maxsize=1024)(aligned)  # excerpts, some 8 MB: pages are found again by other words


def _unaligned(text: str, folded: str, marked: Highlights) -> set[tuple[int, int]]:
    """Words with a letter that folds to several, such as ß: there are few, and only these are folded one by one."""
    found = set()
    for place in _UNALIGNED_WORD.finditer(folded):
        for match in _WORD.finditer(text, *place.span()):
            if _matches(fold(match.group()), marked):
                found.add(match.span())
    return found


def _matches(word: str, marked: Highlights) -> bool:
    return (
        word in marked.words
        or word.startswith(marked.prefixes)
        or any(word.startswith(stem) and len(word) <= len(stem) + _LONGEST_ENDING for stem in marked.stems)
    )


def _found(folded: str, marked: Highlights) -> set[tuple[int, int]]:
    """Spans of whole words in a folded text, an unaligned letter next to one belongs to its word; and of runs."""
    found = set()
    for word in {*marked.words, *marked.prefixes, *marked.stems}:
        begin = folded.find(word) if word else -1
        while begin >= 0:
            end = begin + len(word)
            match = _FOLDED_WORD.match(folded, end)
            if not begin or not _FOLDED_WORD.match(folded, begin - 1):
                end = match.end() if match is not None else end
                if _matches(folded[begin:end], marked):
                    found.add((begin, end))
            begin = folded.find(word, end)
    for run in marked.runs:
        begin = folded.find(run) if run else -1
        while begin >= 0:
            found.add((begin, begin + len(run)))
            begin = folded.find(run, begin + 1)
    return found


class _Folded(dict[int, str]):
    """Character → its folded form if that is one character too, filled as characters occur.

    A character outside of words may become any other such one: an ellipsis, folded to three dots, becomes a blank. A
    mark of a script with vowel signs stays.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code).lower() if code < _ASCII else chr(code)
        folded = fold(normalised(character)) or (character if unicodedata.category(character) == "Mc" else "")
        if unicodedata.category(character) in ("Mn", "Mc") and not 0x300 <= code <= 0x36F:
            folded = character
        if len(folded) != 1:
            folded = UNALIGNED if _WORD.search(character + folded) else " "
        self[code] = folded
        return folded


_ASCII = 0x80
_FOREIGN = 1.3  # bytes a character, from which most of a text is not ASCII
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
UNALIGNED = "\uffff"  # a letter that folds to several
_FOLDED = _Folded()
# Vowel signs and the like are no letters to `\w`, yet belong to their word.
_SIGNS = "\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03"
_FOLDED_WORD = re.compile(rf"[\w{UNALIGNED}{_SIGNS}\u0a3c-\u0a4d\u0abc-\u0acd\u0b3c-\u0b4d\u0bbe-\u0bcd\u0c3e-\u0c4d]+")
_UNALIGNED_WORD = re.compile(rf"\w*{UNALIGNED}[\w{UNALIGNED}]*")


def _best_start(places: list[tuple[int, int]], length: int) -> int:
    """Begin of the first match in the window with most matches."""
    best, best_count, right = 0, 0, 0
    for left, (begin, _) in enumerate(places):
        right = max(right, left)
        while right < len(places) and places[right][1] <= begin + length - _BEFORE:
            right += 1
        if right - left > best_count:
            best, best_count = begin, right - left
    return best


def _in_sentences(text: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The matches in lines that are sentences, if there are any: a title and names of properties explain less."""
    lines = list(_lines(text))
    begins = [begin for begin, _ in lines]
    sentences = [place for place in places if _is_sentence(text, *lines[bisect_right(begins, place[0]) - 1])]
    return sentences or places


def _lines(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for feed in _LINE_FEED.finditer(text):
        yield begin, feed.start()
        begin = feed.end()
    yield begin, len(text)


def _is_sentence(text: str, begin: int, end: int) -> bool:
    return end - begin >= _SHORTEST_SENTENCE or text[begin:end].rstrip()[-1:] in _CLOSING


def _sentence_start(text: str, match: int) -> int:
    """Where the sentence of a match begins; if that is far away, a word shortly before the match."""
    if match <= _BEFORE:
        return 0
    low = max(0, match - _LONGEST_LEAD)
    ends = [found.end() for found in _SENTENCE_END.finditer(text, low, match)]
    place = bisect_left(ends, match)
    if place:
        return ends[place - 1] if ends[place - 1] < match else ends[max(0, place - 2)]
    if not low:
        return 0
    blank = text.find(" ", match - _BEFORE, match)
    return blank + 1 if blank >= 0 else match - _BEFORE
