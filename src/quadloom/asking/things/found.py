"""Things instead of pages: subjects whose texts match, with their type, name and page.

The text index finds the pages whose data has the words; their graphs say which subject has them. All statements of
these pages are read, up to `_MOST_STATEMENTS` for a search; `FoundThings.unread` names pages for which that was not
enough. A match in a name counts more than one in a description, and a name that is the question counts most. Things of
several pages are one hit, with the best page first.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import msgspec
import pyoxigraph as ox
from msgspec.structs import replace

from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.documents.words.analysis import query_tokens, tokens_of
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import Highlights, SearchRequest, TextIndex
from quadloom.stores.text_queries.snippets import UNALIGNED, aligned, offsets, snippet

_TYPE = f"{PREFIXES['rdf']}type"
_MAX_PAGES = 30  # of the text index, per search
_MOST_STATEMENTS = 300_000  # of all these pages: some 1.5 s
_MOST_OF_THING = 200  # statements
_BEST_OF_PAGE = 100  # things
_NAMES = frozenset(("name", "label", "preflabel", "title", "headline", "fn", "altlabel", "alternatename"))
_NAME, _OTHER = 3.0, 1.0
_WHOLE = 3.0  # a name that is the question, word for word


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """`property` and `text`: where the words are, marked as in snippets."""

    iri: str
    label: str = ""
    types: tuple[str, ...] = ()
    property: str = ""
    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()  # in JSON, as in `Hit`
    pages: tuple[str, ...] = ()
    score: float = 0.0


class FoundThings(list[Thing]):
    """Best first. `unread`: pages with more statements than were read."""

    unread: tuple[str, ...] = ()


def find_things(index: TextIndex, quads: QuadStore, request: SearchRequest) -> FoundThings:
    """At most `request.limit`. Filters of the request apply to the pages."""
    wanted = replace(request, offset=0, limit=_MAX_PAGES, snippets=False, facets=False, explain=False)
    answer = index.search(wanted)
    asked = _Asked(answer.highlights, frozenset(map(aligned, query_tokens(request.text))))
    found: dict[str, Thing] = {}
    left = _MOST_STATEMENTS
    unread = []
    for place, hit in enumerate(answer.hits):
        if left <= 0:
            unread.append(hit.id)
            continue
        things, read = _of_page(quads, hit.id, asked, left)
        left -= read
        unread += [hit.id] if left <= 0 else []
        for thing in things:
            # A page's rank decides between things that match alike.
            scored = replace(thing, score=thing.score / (1.0 + 0.05 * place))
            known = found.get(thing.iri)
            if known is None:
                found[thing.iri] = scored
            else:
                best = max(known, scored, key=lambda one: one.score)
                found[thing.iri] = replace(best, pages=(*known.pages, hit.id))
    chosen = [thing for thing in found.values() if not request.types or set(request.types) & set(thing.types)]
    best_first = FoundThings(sorted(chosen, key=lambda thing: -thing.score)[: max(0, request.limit)])
    best_first.unread = tuple(unread)
    return best_first


def for_json(thing: Thing) -> Thing:
    """With plain text, and the places of its matches beside it."""
    text, marks = offsets(thing.text)
    return replace(thing, text=text, marks=marks)


class _Asked:
    """What texts are compared with. `words`: of the question as it is written."""

    def __init__(self, marked: Highlights, words: frozenset[str]) -> None:
        self.marked = marked
        self.words = words
        self._parts = (*marked.words, *marked.prefixes, *marked.stems, *marked.runs)

    def may_match(self, line: str) -> bool:
        """Whether a line has a part of a word; a hundredth of the cost of its score."""
        folded = aligned(line)
        return UNALIGNED in folded or any(part in folded for part in self._parts)


class _Match(NamedTuple):
    score: float
    property: str
    text: str


def _of_page(quads: QuadStore, page: str, asked: _Asked, most: int) -> tuple[list[Thing], int]:
    """The things of a page with a text that matches, and how many statements were read."""
    best: dict[str, _Match] = {}
    read = 0
    for line in quads.match(None, None, None, f"<{page}>", most):
        read += 1
        subject, predicate, rest = line.split(" ", 2)
        if subject[0] != "<" or subject[1] == "<" or rest[0] != '"' or not asked.may_match(rest):
            continue
        (quad,) = ox.parse(line.encode(), ox.RdfFormat.N_QUADS, lenient=True)
        if isinstance(quad.object, ox.Literal):
            name, text = predicate[1:-1], quad.object.value
            match = _Match(_score(name, text, asked), name, text)
            known = best.get(subject)
            if match.score and (known is None or match > known):
                best[subject] = match
    chosen = heapq.nlargest(_BEST_OF_PAGE, best.items(), key=lambda item: item[1].score)
    things = [_thing(quads, page, subject, match, asked.marked) for subject, match in chosen]
    # What every page says about itself is no thing.
    return [thing for thing in things if thing.iri != page or thing.types], read


def _thing(quads: QuadStore, page: str, subject: str, match: _Match, marked: Highlights) -> Thing:
    label, types = "", []
    lines = "\n".join(quads.match(subject, None, None, f"<{page}>", _MOST_OF_THING))
    for quad in ox.parse(lines.encode(), ox.RdfFormat.N_QUADS, lenient=True):
        if quad.predicate.value == _TYPE and isinstance(quad.object, ox.NamedNode):
            types.append(quad.object.value)
        elif isinstance(quad.object, ox.Literal) and not label and _local(quad.predicate.value) in _NAMES:
            label = quad.object.value
    shown = snippet(match.text, marked)
    iri = subject[1:-1]
    return Thing(
        iri=iri, label=label, types=tuple(types), property=match.property, text=shown, pages=(page,), score=match.score
    )


def _score(property: str, text: str, asked: _Asked) -> float:
    marked = asked.marked
    folded = aligned(text[:2000])
    words = {aligned(token) for token in tokens_of(text[:2000])}
    hits = len(words & marked.words) + len(words & asked.words)
    hits += sum(any(word.startswith(stem) for word in words) for stem in (*marked.prefixes, *marked.stems))
    hits += sum(run in folded for run in marked.runs)
    if not hits:
        return 0.0
    is_name = _local(property) in _NAMES
    whole = _WHOLE if is_name and words == asked.words else 1.0
    return whole * (_NAME if is_name else _OTHER) * hits / (1.0 + 0.02 * len(words))


def _local(iri: str) -> str:
    return iri.rpartition("#")[2].rpartition("/")[2].lower()
