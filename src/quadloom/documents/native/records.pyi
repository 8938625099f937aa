"""Loops over the references, links and statements of a page, in C. They know the usual cases; what they
leave to their callers is said for each."""

from collections.abc import Callable, Set
from typing import TypeVar

from quadloom.model.link import Link, LinkKind
from quadloom.model.quads import Triple

T = TypeVar("T", bound=tuple[str, str, int])

def join_all(
    references: list[str | None], origin: str, folder: str, page: str, origins: dict[str, bool], longest: int, /
) -> list[str | None]:
    """What `ReferenceResolver.concatenated` of `quadloom.documents.syntaxes.iri` gives for each reference. `origins` is
    asked for each origin. The folder begins with the origin and a slash. Without an origin only absolute references can
    be joined, without a page no queries."""

def link_terms(
    triples: tuple[Triple, ...],
    type: str,
    see_also: Set[str],
    other: LinkKind,
    seealso: LinkKind,
    vocabulary: LinkKind,
    /,
) -> dict[str, LinkKind]:
    """`_link_terms` of `quadloom.documents.syntaxes.rdf.links`, with the words for its kinds."""

def places_using(triples: tuple[Triple, ...], beginning: str, datatype: str, /) -> list[int]:
    """Statements whose predicate or object begins so, or whose object has such a datatype."""

def predicates(triples: tuple[Triple, ...], /) -> set[str]:
    """All predicates."""

def literal_words(objects: list[str], most: int, wordy: Set[str], /) -> tuple[str, int] | None:
    """`literals_in` and `words_of` of `quadloom.documents.index`, with escapes as they are; None if there is a triple
    term."""

def targets_of(links: tuple[Link, ...], known: dict[str, T], find: Callable[[str], T], /) -> list[T]:
    """For each link what is known of its target; `find` is called for the others."""

def fingerprints(links: tuple[Link, ...], targets: list[T], left_out: Set[str], /) -> set[int]:
    """The third field of each target, except for links of the kinds that are left out."""
