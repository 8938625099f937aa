"""`/search`: words and facets to pages, each with a card of the things it tells of."""

from __future__ import annotations

import base64
import binascii

import msgspec

from quadloom.asking.search import as_sparql, search, search_request
from quadloom.asking.sparql.prefixes import shorten
from quadloom.stores.protocols.text import Hit
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.cards import Card
from quadloom.web.view.terms import quoted

_DEFAULT, _MOST = 10, 100
# Parameter of the address → name of the facet in the index, heading.
FACETS = (
    ("type", "types", "Type"), ("vocab", "vocabularies", "Vocabulary"), ("site", "sites", "Site"),
    ("lang", "languages", "Language"), ("kind", "kinds", "Kind"),
)  # fmt: skip


class Facet(msgspec.Struct, frozen=True):
    """One value to choose: `href` adds it to the search, or takes it away where it is `chosen`."""

    value: str
    count: int
    href: str
    chosen: bool = False


class FacetGroup(msgspec.Struct, frozen=True):
    name: str
    heading: str
    values: list[Facet]


class SearchView(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is opaque: give it back to get the next part."""

    q: str
    hits: tuple[Hit, ...] = ()
    total: int = 0
    total_is_estimate: bool = False
    took_ms: float = 0.0
    facets: dict[str, list[tuple[str, int]]] = {}
    cards: dict[str, Card] = {}  # of hits that tell of a thing with a type, by their URL
    next: str = ""
    sparql: str = ""


def search_page(ask: WebRequest) -> ViewResponse:
    text = ask.text("q").strip()
    limit = ask.number("limit", _DEFAULT, low=1, high=_MOST)
    offset = _offset(ask.text("next"))
    request = search_request(
        text,
        types=ask.texts("type"),
        vocabularies=ask.texts("vocab"),
        sites=ask.texts("site"),
        languages=ask.texts("lang"),
        kinds=ask.texts("kind"),
        since=ask.text("since"),
        until=ask.text("until"),
        limit=limit,
        offset=offset,
        facets=True,
    )
    if not text and not any((request.types, request.vocabularies, request.sites, request.languages, request.kinds)):
        request = msgspec.structs.replace(request, since=request.since or 1.0)  # all pages, the newest first
    answer = search(ask.warehouse.text, request)
    found = SearchView(
        q=text,
        hits=answer.hits,
        total=answer.total,
        took_ms=round(answer.seconds * 1000, 2),
        facets=answer.facets,
        cards=ask.desk.cards.of(ask.warehouse.quads, answer.hits),
        next=_mark(offset + limit) if answer.total > offset + limit else "",
        sparql=as_sparql(request),
    )
    extra: dict[str, object] = {
        "groups": _groups(ask, answer.facets),
        "more": ask.link(next=found.next) if found.next else "",
        "first": offset + 1,
        "since": ask.text("since"),
        "until": ask.text("until"),
        "short": shorten,
    }
    return ViewResponse("search.html", found, {**extra, "chosen": _chosen(ask)})


def _groups(ask: WebRequest, facets: dict[str, list[tuple[str, int]]]) -> list[FacetGroup]:
    groups = []
    for name, facet, heading in FACETS:
        chosen, without = ask.texts(name), ask.link(**{name: None, "next": None})
        adding = f"{without}{'&' if '?' in without else '?'}{name}="
        values = [
            Facet(value, count, without if value in chosen else adding + quoted(value), value in chosen)
            for value, count in facets.get(facet, [])[:12]
        ]
        if values:
            groups.append(FacetGroup(name, heading, values))
    return groups


def _chosen(ask: WebRequest) -> list[tuple[str, str]]:
    """What a new search in the same form keeps."""
    return [(name, value) for name, _, _ in FACETS for value in ask.texts(name)]


def _mark(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def _offset(mark: str) -> int:
    if not mark:
        return 0
    try:
        text = base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)).decode("ascii")
        return min(int(text.removeprefix("o")), 10_000 - _MOST) if text[0] == "o" and text[1:].isdigit() else _wrong()
    except (binascii.Error, ValueError, IndexError):
        return _wrong()


def _wrong() -> int:
    raise RequestRefused(400, "next is not a mark of ours", hint="take it from the last answer, or leave it out")
