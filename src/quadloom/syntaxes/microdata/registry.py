"""The vocabulary registry of *Microdata to RDF*: which type belongs to which vocabulary, and what a property implies.

A type is matched against the prefixes character for character; without a match the vocabulary is the type cut after
its `#`, or after the last `/` of its path.
"""

from __future__ import annotations

from collections.abc import Mapping

from quadloom.syntaxes.terms import RDF

# Property name -> the properties it is a sub-property of or equivalent to; each gives one more statement.
Expansions = Mapping[str, tuple[str, ...]]

_TYPE = (f"{RDF}type",)
REGISTRY: Mapping[str, Expansions] = {
    # The published registry at http://www.w3.org/ns/md knows the http form only; most pages write https today.
    "http://schema.org/": {"additionalType": _TYPE},
    "https://schema.org/": {"additionalType": _TYPE},
    # Types with their properties beside them, not under them: the note's own example wants `hcard#given-name`.
    "http://microformats.org/profile/hcard": {},
    # The artificial vocabulary of the W3C suite. Its two cases name no registry, so it must stand in the default one;
    # no public host can be called `expansion`.
    "http://expansion/": {"subPropertyOf": _TYPE, "equivalentProperty": _TYPE},
}


def vocabulary_of(kind: str, registry: Mapping[str, Expansions]) -> tuple[str, Expansions]:
    """The vocabulary of an item type (an absolute URL) and its expansions."""
    for prefix, expansions in registry.items():
        if kind.startswith(prefix):
            return prefix, expansions
    head, mark, _ = kind.partition("#")
    if mark:
        return head + mark, {}
    path = kind.partition("?")[0]
    authority = path.find("//")
    cut = path.rfind("/", authority + 2 if authority >= 0 else 0)
    return (path[: cut + 1] if cut >= 0 else path), {}
