"""Links inside data: the IRIs of statements that could be visited, by what they are to the page."""

from __future__ import annotations

from collections.abc import Iterable

from quadloom.model.link import Link, LinkKind
from quadloom.model.url import resolve
from quadloom.syntaxes.terms import RDFS, TYPE

_OWL = "http://www.w3.org/2002/07/owl#"
_SEE_ALSO = frozenset(
    (
        f"<{RDFS}seeAlso>", f"<{RDFS}isDefinedBy>", f"<{_OWL}sameAs>", f"<{_OWL}imports>",
        "<http://schema.org/sameAs>", "<https://schema.org/sameAs>", "<http://www.w3.org/2004/02/skos/core#exactMatch>",
    )
)  # fmt: skip
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".ico")


def data_links(statements: Iterable[str], source: str, limit: int = 20_000) -> list[Link]:
    """Links from `subject predicate object` strings: `seealso`, then `other` IRIs, and `vocabulary` for terms in use."""
    found: dict[str, LinkKind] = {}
    terms: dict[str, None] = {}
    for statement in statements:
        subject, predicate, value = statement.split(" ", 2)
        terms[predicate] = None
        if predicate == TYPE:
            terms[value] = None
        elif value.startswith("<http"):
            if predicate in _SEE_ALSO:
                found[value] = "seealso"
            elif value not in found:
                found[value] = "other"
        if subject.startswith("<http") and subject not in found:
            found[subject] = "other"
    for term in terms:
        if term.startswith("<http"):
            found[term] = "vocabulary"
    return _as_links(found, source, limit)


def _as_links(found: dict[str, LinkKind], source: str, limit: int) -> list[Link]:
    links: dict[str, Link] = {}
    for term, kind in found.items():
        text = term[1:-1]
        cut = text.find("#")
        target = text if cut < 0 else text[:cut]
        if target in links or target == source:
            continue
        href = resolve(target)
        if href is None or href == source or href.lower().endswith(_IMAGES):
            continue
        links[target] = Link(href, source, kind)
        if len(links) >= limit:
            break
    return list(links.values())
