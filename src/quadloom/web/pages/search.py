"""`/search`: pages by words and facets, each with a card of the thing it describes, or the things themselves; and
`/suggest`, which completes what is being typed."""

from __future__ import annotations

import base64
import binascii

import msgspec

from quadloom.asking.search import for_json, search, search_request, why_nothing
from quadloom.asking.sparql.prefixes import expand
from quadloom.asking.sparql.text_patterns import as_sparql
from quadloom.asking.suggest import Suggestion, suggest
from quadloom.asking.things.found import FoundThings, Thing, find_things
from quadloom.asking.things.found import for_json as thing_for_json
from quadloom.asking.things.paths import PART_TYPES, canonical, type_name
from quadloom.stores.protocols.text import Correction, Hit, SearchRequest
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.cards import Card
from quadloom.web.view.terms import quoted

_DEFAULT_LIMIT, _MAX_LIMIT = 10, 100
_MAX_MARK = 12  # characters
_MAX_CARDS = 3  # pages whose things are suggested
ALL_PAGES_SINCE = 1.0  # a filter by Unix time that all pages pass, so that the index lists them by date
# Parameter of the address → name of the facet in the index, heading.
FACETS = (
    ("type", "types", "Type"), ("vocab", "vocabularies", "Vocabulary"), ("site", "sites", "Site"),
    ("lang", "languages", "Language"), ("kind", "kinds", "Kind"),
)  # fmt: skip
_COMMON_VOCABULARIES = ("rdf", "rdfs", "owl", "xsd", "xhv", "iana", "http://www.w3.org/ns/rdfa#")
_VOCABULARIES = {
    "schema": "Schema.org", "dc": "Dublin Core 1.1", "dcterms": "Dublin Core", "foaf": "FOAF", "og": "Open Graph",
    "rss": "RSS", "vcard": "vCard", "skos": "SKOS", "dcat": "DCAT", "gr": "GoodRelations", "prov": "PROV",
}  # fmt: skip


class Facet(msgspec.Struct, frozen=True):
    """One value to choose: `href` adds it to the search, or removes it if it is `chosen`. `label`: for people."""

    value: str
    count: int
    href: str
    chosen: bool
    label: str


class FacetGroup(msgspec.Struct, frozen=True):
    name: str
    heading: str
    values: list[Facet]


class SearchView(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is opaque: send it back to get the next part."""

    q: str
    hits: tuple[Hit, ...] = ()
    total: int = 0
    took_ms: float = 0.0
    facets: dict[str, list[tuple[str, int]]] = {}
    cards: dict[str, Card] = {}  # of hits that describe a thing with a type, by their URL
    next: str = ""
    sparql: str = ""
    corrections: tuple[Correction, ...] = ()  # words that occur nowhere, and those that were searched for instead
    missing: tuple[str, ...] = ()  # words that no page has
    offers: tuple[Correction, ...] = ()  # nearest words for those of an exact search that no page has
    most_words: bool = False  # some hits have only most of the words
    reasons: tuple[str, ...] = ()  # filters that no page passes, if nothing was found
    things: tuple[Thing, ...] = ()  # with show=things, instead of hits


class SuggestView(msgspec.Struct, frozen=True):
    q: str
    suggestions: tuple[Suggestion, ...] = ()


def search_page(request: WebRequest) -> ViewResponse:
    wanted = _search_request(request)
    if request.text("show") == "things":
        return _things_page(request, wanted)
    stores = request.warehouse.stores
    answer = search(stores.text, wanted, stores.catalog)
    end = wanted.offset + wanted.limit
    view = SearchView(
        q=wanted.text,
        hits=tuple(map(for_json, answer.hits)) if request.wants_json else answer.hits,
        total=answer.total,
        took_ms=round(answer.seconds * 1000, 2),
        facets=answer.facets,
        cards=request.site.cards.of(stores.quads, answer.hits),
        next=_encode_offset(end) if answer.total > end else "",
        sparql=as_sparql(wanted),
        corrections=answer.corrections,
        missing=answer.missing,
        offers=answer.offers,
        most_words=answer.most_words,
        reasons=() if answer.total else tuple(why_nothing(stores.text, wanted)),
    )
    return ViewResponse("search.html", view, _form(request, wanted, view))


def _things_page(request: WebRequest, wanted: SearchRequest) -> ViewResponse:
    stores = request.warehouse.stores
    found = find_things(stores.text, stores.quads, wanted) if wanted.text else FoundThings()
    things = tuple(map(thing_for_json, found) if request.wants_json else found)
    reasons = tuple(f"not all statements of {page} were read" for page in found.unread)
    view = SearchView(q=wanted.text, total=len(found), things=things, reasons=reasons, sparql=as_sparql(wanted))
    return ViewResponse("search.html", view, _form(request, wanted, view))


def suggest_page(request: WebRequest) -> ViewResponse:
    stores = request.warehouse.stores
    typed = request.text("q")
    offered = suggest(stores.text, typed)
    cards = request.site.cards.of(stores.quads, offered.hits[:_MAX_CARDS])
    known = {item.text.lower() for item in offered.found}
    things = [
        Suggestion("thing", card.label, card.iri)
        for card in cards.values()
        if card.label and card.label.lower() not in known
    ]
    return ViewResponse("suggest.html", SuggestView(typed, (*offered.found, *things)))


def _form(request: WebRequest, wanted: SearchRequest, view: SearchView) -> dict[str, object]:
    """What the page needs besides; its data as JSON does not, and this would be a tenth of their cost."""
    if request.wants_json:
        return {}
    return {
        "groups": _groups(request, view.facets),
        "more": request.link(next=view.next) if view.next else "",
        "exactly": request.link(exact="1", next=None) if view.corrections or view.most_words else "",
        "freely": request.link(exact=None, next=None) if wanted.exact else "",
        "with_gone": request.link(gone="1", next=None) if not wanted.gone else "",
        "as_things": request.link(show="things", next=None),
        "as_pages": request.link(show=None, next=None),
        "showing": "things" if request.text("show") == "things" else "pages",
        "corrected": {item.asked for item in view.corrections},
        "first": wanted.offset + 1,
        "since": request.text("since"),
        "until": request.text("until"),
        "chosen": _chosen(request),
    }


def _search_request(request: WebRequest) -> SearchRequest:
    """Without words and filters: all pages, the newest first."""
    wanted = search_request(
        request.text("q").strip(),
        type=request.texts("type"),
        vocabulary=request.texts("vocab"),
        site=request.texts("site"),
        language=request.texts("lang"),
        kind=request.texts("kind"),
        since=request.text("since"),
        until=request.text("until"),
        limit=request.number("limit", _DEFAULT_LIMIT, low=1, high=_MAX_LIMIT),
        offset=_decode_offset(request.text("next")),
        facets=True,
        exact=request.text("exact") == "1",
        gone=request.text("gone") == "1",
        explain=request.text("explain") == "1",
    )
    if wanted.text or any((wanted.types, wanted.vocabularies, wanted.sites, wanted.languages, wanted.kinds)):
        return wanted
    return msgspec.structs.replace(wanted, since=wanted.since or ALL_PAGES_SINCE)


def _groups(request: WebRequest, facets: dict[str, list[tuple[str, int]]]) -> list[FacetGroup]:
    groups = []
    for name, facet, heading in FACETS:
        chosen, without = request.texts(name), request.link(**{name: None, "next": None})
        adding = f"{without}{'&' if '?' in without else '?'}{name}="
        found = [pair for pair in facets.get(facet, []) if pair[0] in chosen or not _is_hidden(name, pair[0])]
        values = [
            Facet(value, count, adding + quoted(value), False, _label(name, value))
            if value not in chosen
            else Facet(value, count, without, True, _label(name, value))
            for value, count in found[:12]
        ]
        if values:
            groups.append(FacetGroup(name, heading, values))
    return groups


def _is_hidden(name: str, value: str) -> bool:
    """Parts of other things, and vocabularies that every page uses: nobody narrows a search by them."""
    if name == "type":
        return canonical(expand(value)) in PART_TYPES
    return name == "vocab" and value.rstrip(":") in _COMMON_VOCABULARIES


def _label(name: str, value: str) -> str:
    if name == "type":
        return type_name(expand(value))
    return _VOCABULARIES.get(value.rstrip(":"), value) if name == "vocab" else value


def _chosen(request: WebRequest) -> list[tuple[str, str]]:
    """The filters that a new search in the same form keeps."""
    return [(name, value) for name, _, _ in FACETS for value in request.texts(name)]


def _encode_offset(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def _decode_offset(mark: str) -> int:
    if not mark:
        return 0
    try:
        text = base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    if not (text.startswith("o") and text[1:].isdigit() and len(text) <= _MAX_MARK):
        raise HttpError(400, "the parameter next is not valid", hint="copy it from the last response, or leave it out")
    return min(int(text[1:]), 10_000 - _MAX_LIMIT)
