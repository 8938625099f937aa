"""Things instead of pages: subjects whose texts match, with their type, name and page.

The text index finds the pages whose data has the words; their graphs say which subject has them. A match in a name
counts more than one in a description. Things of several pages are one hit, with the best page first.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyoxigraph as ox
from msgspec.structs import replace

from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.documents.words.analysis import tokens_of
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import Highlights, SearchRequest, TextIndex
from quadloom.stores.text_queries.snippets import aligned, offsets, snippet

_TYPE = f"{PREFIXES['rdf']}type"
_MAX_PAGES = 30  # of the text index, per search
_MAX_STATEMENTS = 2000  # of a page
_NAMES = frozenset(("name", "label", "preflabel", "title", "headline", "fn", "altlabel", "alternatename"))
_NAME, _OTHER = 3.0, 1.0
_ENOUGH = 0.5  # share of the words that a text must have


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


def find_things(index: TextIndex, quads: QuadStore, request: SearchRequest) -> list[Thing]:
    """Best first, at most `request.limit`. Filters of the request apply to the pages."""
    wanted = replace(request, offset=0, limit=_MAX_PAGES, snippets=False, facets=False, explain=False)
    answer = index.search(wanted)
    found: dict[str, Thing] = {}
    for place, hit in enumerate(answer.hits):
        for thing in _of_page(quads, hit.id, answer.highlights):
            # A page's rank decides between things that match alike.
            scored = replace(thing, score=thing.score / (1.0 + 0.05 * place))
            known = found.get(thing.iri)
            if known is None:
                found[thing.iri] = scored
            else:
                best = max(known, scored, key=lambda one: one.score)
                found[thing.iri] = replace(best, pages=(*known.pages, hit.id))
    chosen = [thing for thing in found.values() if not request.types or set(request.types) & set(thing.types)]
    return sorted(chosen, key=lambda thing: -thing.score)[: max(0, request.limit)]


def for_json(thing: Thing) -> Thing:
    """With plain text, and the places of its matches beside it."""
    text, marks = offsets(thing.text)
    return replace(thing, text=text, marks=marks)


def _of_page(quads: QuadStore, page: str, marked: Highlights) -> Iterable[Thing]:
    """The things of a page with a text that matches."""
    texts: dict[str, list[tuple[str, str]]] = {}
    types: dict[str, list[str]] = {}
    lines = "\n".join(quads.match(None, None, None, f"<{page}>", _MAX_STATEMENTS))
    for quad in ox.parse(lines.encode(), ox.RdfFormat.N_QUADS, lenient=True):
        if not isinstance(quad.subject, ox.NamedNode):
            continue
        if quad.predicate.value == _TYPE and isinstance(quad.object, ox.NamedNode):
            types.setdefault(quad.subject.value, []).append(quad.object.value)
        elif isinstance(quad.object, ox.Literal):
            texts.setdefault(quad.subject.value, []).append((quad.predicate.value, quad.object.value))
    for subject, stated in texts.items():
        if subject == page and subject not in types:  # what every page says about itself
            continue
        score, property, text = max((_score(name, said, marked), name, said) for name, said in stated)
        if score > 0.0:
            label = next((said for name, said in stated if _local(name) in _NAMES), "")
            kinds = tuple(types.get(subject, ()))
            shown = snippet(text, marked)
            yield Thing(
                iri=subject, label=label, types=kinds, property=property, text=shown, pages=(page,), score=score
            )


def _score(property: str, text: str, marked: Highlights) -> float:
    words = {aligned(token) for token in tokens_of(text[:2000])}
    folded = aligned(text[:2000])
    hits = len(words & marked.words)
    hits += sum(any(word.startswith(stem) for word in words) for stem in (*marked.prefixes, *marked.stems))
    hits += sum(run in folded for run in marked.runs)
    if not hits:
        return 0.0
    weight = _NAME if _local(property) in _NAMES else _OTHER
    return weight * hits / (1.0 + 0.02 * len(words))


def _local(iri: str) -> str:
    return iri.rpartition("#")[2].rpartition("/")[2].lower()
