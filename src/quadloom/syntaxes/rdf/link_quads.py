"""Links as statements, for the index: the vocabulary of relations.

A relation that XHTML's vocabulary names keeps that name (an RDFa 1.0 processor says the same); other words that IANA
has registered get IANA's name; a relation that is itself an IRI is the predicate. What has no name of its own
is `dcterms:references`, which means no more than a plain link does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from quadloom.model.link import Link, LinkKind
from quadloom.syntaxes.terms import RDFS, iri, literal

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


def link_quads(links: Iterable[Link], which: Literal["typed", "all"]) -> list[str]:
    """Statements (`subject predicate object` in N-Triples terms) for the links.

    `typed` leaves out plain links and the data's own IRIs, which are statements already. Labels come with feeds,
    alternates and typed links: they are few, and their words say what the target is.
    """
    statements: dict[str, None] = {}
    unsaid = _IN_DATA if which == "all" else _IN_DATA_OR_PLAIN
    for link in links:
        if link.kind in unsaid:
            continue
        source, target = iri(link.source), iri(link.target)
        if source is None or target is None:
            continue
        for predicate in _predicates(link):
            statements[f"{source} {predicate} {target}"] = None
        if link.anchor and (which == "all" or link.kind != "plain"):
            statements[f"{target} {LABEL} {literal(link.anchor)}"] = None
    return list(statements)


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
