"""Types with their subtypes: a table of Event holds concerts and plays too.

Which type is below which is stated by the vocabularies that the checks know (schema.org, DCAT, FOAF …). Pages may state
it by rdfs:subClassOf for types that these do not know; about known ones nothing that a page states counts, or one page
could make every person an event. It is a view: SPARQL, exports and subscriptions have the types as pages state them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from quadloom.asking.sparql.prefixes import PREFIXES, both_schemes
from quadloom.asking.things.paths import canonical
from quadloom.documents.checks.vocabulary import vocabularies

SUBCLASS = PREFIXES["rdfs"] + "subClassOf"


class TypeTree:
    """The types in use. `used`: IRI as it is written → descriptions. `stated`: pairs of subtype and type."""

    def __init__(self, used: Mapping[str, int], stated: Iterable[tuple[str, str]] = ()) -> None:
        self._stated: dict[str, list[str]] = {}
        for lower, upper in stated:
            self._stated.setdefault(canonical(lower), []).append(canonical(upper))
        self._above: dict[str, list[str]] = {}  # type in use → types above it, the nearest first
        self._below: dict[str, list[str]] = {}  # type → it and those below, as they are written
        for iri in used:
            type = canonical(iri)
            above = self._above.setdefault(type, self._ancestors(type))
            for upper in (type, *above):
                self._below.setdefault(upper, []).append(iri)

    def with_subtypes(self, type: str) -> tuple[str, ...]:
        """The type and those below it, as pages in this warehouse write them; empty if no thing has one of them."""
        return tuple(self._below.get(canonical(type), ()))

    def alone(self, type: str) -> tuple[str, ...]:
        """The spellings of the type itself that are in use."""
        return tuple(iri for iri in self._below.get(canonical(type), ()) if iri in both_schemes(type))

    def parent(self, type: str, among: Container[str]) -> str:
        """The nearest type above that is `among` these; empty = there is none."""
        return next((upper for upper in self._above.get(canonical(type), ()) if upper in among), "")

    def _ancestors(self, type: str) -> list[str]:
        found = {type: None}
        waiting = [type]
        for lower in waiting:  # grows on the way
            new = [upper for upper in self._parents(lower) if upper not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        return waiting[1:]

    def _parents(self, type: str) -> list[str]:
        known = vocabularies().find(type)
        if known is None or known[1] not in known[0].types:
            return self._stated.get(type, [])
        table, name = known
        return [table.namespaces[0] + parent for parent in table.types[name]]
