"""Links inside data: the IRIs of statements that could be visited, by what they are to the page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from quadloom.model.link import Link, LinkKind
from quadloom.model.url import MAX_LENGTH, resolve
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
    """Links from `subject predicate object` strings: `seealso`, `other` IRIs, and `vocabulary` for terms in use."""
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
        target, hash_mark, _ = term[1:].partition("#")
        if not hash_mark:
            target = target[:-1]
        if target in links or target == source or len(target) > MAX_LENGTH:
            continue
        href = _page_at(target)
        if href is None or href == source:
            continue
        links[target] = Link(href, source, kind)
        if len(links) >= limit:
            break
    return list(links.values())


@lru_cache(maxsize=1 << 14)
def _page_at(iri: str) -> str | None:
    """Where the IRI could be visited. Remembered: pages share vocabularies (85 to 31 µs a page once known)."""
    href = resolve(iri)
    return href if href is not None and not href.lower().endswith(_IMAGES) else None
