"""Links in data and links as data.

`data_links` finds the IRIs of statements that could be visited. `link_triples` states links for the index: a relation
that XHTML's vocabulary names keeps that name (an RDFa 1.0 processor says the same); other words that IANA has
registered get IANA's name; a relation that is itself an IRI is the predicate. What has no name of its own is
`dcterms:references`, which means no more than a plain link does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from quadloom.documents.syntaxes.iri import resolve_absolute
from quadloom.documents.syntaxes.terms import RDFS, TYPE, iri, literal
from quadloom.model.link import Link, LinkKind
from quadloom.model.quads import Triple
from quadloom.model.url import MAX_LENGTH

try:
    from quadloom.documents.native.records import link_terms as _native_terms
except ImportError:  # it was not built: there is no compiler
    _native_terms = None  # type: ignore[assignment]

_OWL = "http://www.w3.org/2002/07/owl#"
_SEE_ALSO = frozenset(
    (
        f"<{RDFS}seeAlso>", f"<{RDFS}isDefinedBy>", f"<{_OWL}sameAs>", f"<{_OWL}imports>",
        "<http://schema.org/sameAs>", "<https://schema.org/sameAs>", "<http://www.w3.org/2004/02/skos/core#exactMatch>",
    )
)  # fmt: skip
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".ico")


def data_links(statements: Sequence[Triple], source: str, limit: int = 20_000) -> list[Link]:
    """Links from statements: `seealso`, `other` IRIs, and `vocabulary` for terms in use."""
    if _native_terms is None:
        found = _link_terms(statements)
    else:
        found = _native_terms(tuple(statements), TYPE, _SEE_ALSO, "other", "seealso", "vocabulary")
    links: dict[str, Link] = {}
    for term, kind in found.items():
        page, href = _page_of(term)
        if href is None or page in links or page == source or href == source:
            continue
        links[page] = Link(href, source, kind)
        if len(links) >= limit:
            break
    return list(links.values())


def _link_terms(statements: Iterable[Triple]) -> dict[str, LinkKind]:
    """Terms that begin with `<http`, by the kind of link that they are. As
    `quadloom.documents.native.records.link_terms`."""
    found: dict[str, LinkKind] = {}
    terms: dict[str, None] = {}
    before = ""
    for subject, predicate, value in statements:
        terms[predicate] = None
        if predicate == TYPE:
            terms[value] = None
        elif value[:5] == "<http":
            if predicate in _SEE_ALSO:
                found[value] = "seealso"
            elif value not in found:
                found[value] = "other"
        if subject != before:  # most things have several statements in a row
            before = subject
            if subject[:5] == "<http" and subject not in found:
                found[subject] = "other"
    for term in terms:
        if term.startswith("<http"):
            found[term] = "vocabulary"
    return found


@lru_cache(maxsize=1 << 14)  # pages share vocabularies
def _page_of(term: str) -> tuple[str, str | None]:
    """The IRI without brackets and fragment, and where it could be visited."""
    iri, mark, _ = term[1:].partition("#")
    if not mark:
        iri = iri[:-1]
    if len(iri) > MAX_LENGTH:
        return "", None
    href = resolve_absolute(iri)
    return iri, (href if href is not None and not href.lower().endswith(_IMAGES) else None)


XHV = "http://www.w3.org/1999/xhtml/vocab#"
IANA = "http://www.iana.org/assignments/relation/"
REFERENCES = "<http://purl.org/dc/terms/references>"
SEE_ALSO = f"<{RDFS}seeAlso>"
LABEL = f"<{RDFS}label>"

_XHV_NAMES = (
    "alternate appendix bookmark cite chapter contents copyright first glossary help icon index last license "
    "meta next prev section start subsection top up"
)
_XHV = frozenset(_XHV_NAMES.split())
_IANA_NAMES = (
    "about archives author canonical collection current describedby describes edit enclosure hub item "
    "latest-version me memento original payment permalink predecessor-version privacy-policy related replies "
    "search self service successor-version tag terms-of-service timegate timemap type version-history via "
    "webmention working-copy"
)
_IANA = frozenset(_IANA_NAMES.split())
_IN_DATA: frozenset[LinkKind] = frozenset(("other", "vocabulary", "seealso"))
_IN_DATA_OR_PLAIN: frozenset[LinkKind] = _IN_DATA | frozenset[LinkKind](("plain", "image"))
_SYNONYMS = {"previous": "prev", "licence": "license"}


def link_triples(links: Iterable[Link], which: Literal["typed", "all"]) -> dict[Triple, None]:
    """Statements for the links, in order.

    `typed` leaves out plain links and the data's own IRIs, which are statements already. Labels come with feeds,
    alternates and typed links: they are few, and their words say what the target is.
    """
    statements: dict[Triple, None] = {}
    unsaid = _IN_DATA if which == "all" else _IN_DATA_OR_PLAIN
    for link in links:
        if link.kind in unsaid:
            continue
        source, target = iri(link.source), iri(link.target)
        if source is None or target is None:
            continue
        for predicate in _predicates(link):
            statements[source, predicate, target] = None
        if link.anchor and (which == "all" or link.kind != "plain"):
            statements[target, LABEL, literal(link.anchor)] = None
    return statements


def _predicates(link: Link) -> list[str]:
    found = []
    for word in link.rel.split():
        name = _SYNONYMS.get(word, word)
        if name in _XHV:
            found.append(f"<{XHV}{name}>")
        elif name in _IANA:
            found.append(f"<{IANA}{name}>")
        elif ":" in word:
            term = iri(word)
            if term:
                found.append(term)
    if link.kind in ("feed", "describedby"):
        found.append(SEE_ALSO)
    return found or [REFERENCES]
