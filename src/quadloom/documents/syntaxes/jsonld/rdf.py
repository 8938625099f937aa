"""Expanded JSON-LD to N-Quads lines (JSON-LD API, sections 7 and 8).

The specification goes through a node map, which merges the objects of equal @id and drops repeated values. Statements
are a set, so writing them while walking the expanded tree gives the same dataset in linear time; of the node map only
one check is left, that a node has no two different @index values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.json import Json, canonical, integer_or_double
from quadloom.documents.syntaxes.jsonld.terms import invalid
from quadloom.documents.syntaxes.terms import RDF, TYPE, XSD, literal

Direction = Literal["i18n-datatype", "compound-literal"]
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_LONGEST_LANGUAGE = 128  # as in `terms`: a long one on every literal would multiply a page
_I18N = "https://www.w3.org/ns/i18n#"
FIRST, REST, NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"


class RdfWriter:
    """Writes statements as `subject predicate object` with an optional graph term through `emit`.

    `blank` gives a new label at each call; the labels of the document are mapped to such, so that no label of
    an author can clash. A statement with a term that is not well-formed is dropped; `dropped` counts them. With
    `spaces`, the page's base, addresses with spaces are read as a browser does; `spaced` counts them.
    """

    def __init__(
        self,
        emit: Callable[[str, str, str, str], None],
        blank: Callable[[], str],
        *,
        direction: Direction | None = None,
        spaces: str = "",
    ) -> None:
        self._spaces = spaces
        self._emit = emit
        self._blank = blank
        self._direction = direction
        self._labels: dict[str, str] = {}
        self._indexes: dict[tuple[str, str], str] = {}
        self.dropped = self.spaced = 0

    def write(self, expanded: Iterable[Json], graph: str = "") -> None:
        for item in expanded:
            if isinstance(item, dict) and "@value" not in item and "@list" not in item:
                self._node(item, graph)

    def _node(self, node: dict[str, Json], graph: str) -> str | None:
        """Write what a node object says; its term, or None if its @id is not well-formed."""
        name = node.get("@id")
        subject = self.resource(name) if isinstance(name, str) else None if "@id" in node else self._blank()
        index = node.get("@index")
        known = isinstance(index, str) and isinstance(name, str)
        if known and self._indexes.setdefault((graph, str(name)), str(index)) != index:
            raise invalid("conflicting indexes", name)
        for key, value in node.items():
            if key == "@type":
                for item in value if isinstance(value, list) else [value]:
                    self._state(subject, TYPE, self.resource(item) if isinstance(item, str) else None, graph)
            elif key == "@graph" and isinstance(value, list):
                self._named_graph(subject, value)
            elif key == "@included" and isinstance(value, list):
                self.write(value, graph)
            elif key == "@reverse" and isinstance(value, dict):
                self._reversed(subject, value, graph)
            elif key[0] != "@" and isinstance(value, list):
                predicate = None if key.startswith("_:") else self.resource(key)
                for item in value:
                    if subject is None or predicate is None:
                        self._inner_nodes(item, graph)
                    else:
                        self._state(subject, predicate, self._object(item, graph), graph)
        return subject

    def _inner_nodes(self, item: Json, graph: str) -> None:
        """Write the nodes inside a value that no statement can refer to; its lists and literals are dropped."""
        self.dropped += 1
        if isinstance(item, dict) and "@value" not in item:
            items = item.get("@list")
            if isinstance(items, list):
                for inner in items:
                    self._inner_nodes(inner, graph)
            else:
                self._node(item, graph)

    def _named_graph(self, subject: str | None, value: list[Json]) -> None:
        if subject is not None:
            self.write(value, subject)
        else:
            self.dropped += 1

    def _reversed(self, obj: str | None, value: dict[str, Json], graph: str) -> None:
        for key, items in value.items():
            predicate = None if key.startswith("_:") else self.resource(key)
            for item in items if isinstance(items, list) else []:
                self._state(self._object(item, graph), predicate, obj, graph)

    def _state(self, subject: str | None, predicate: str | None, obj: str | None, graph: str) -> None:
        if subject is None or predicate is None or obj is None:
            self.dropped += 1
        else:
            self._emit(subject, predicate, obj, graph)

    def _object(self, item: Json, graph: str) -> str | None:
        if not isinstance(item, dict):
            return None
        if "@value" in item:
            return self._literal(item, graph)
        items = item.get("@list")
        if isinstance(items, list):
            return self._list(items, graph)
        return self._node(item, graph)

    def _list(self, items: list[Json], graph: str) -> str:
        """A chain of rdf:first and rdf:rest. An item without a term leaves a cell without rdf:first."""
        if not items:
            return NIL
        cells = [self._blank() for _ in items]
        for cell, rest, item in zip(cells, [*cells[1:], NIL], items, strict=True):
            obj = self._object(item, graph)
            if obj is not None:
                self._emit(cell, FIRST, obj, graph)
            self._emit(cell, REST, rest, graph)
        return cells[0]

    def _literal(self, item: dict[str, Json], graph: str) -> str | None:
        value, datatype, language = item["@value"], item.get("@type"), item.get("@language")
        if datatype == "@json":
            return literal(canonical(value), datatype=f"{RDF}JSON")
        if datatype is not None and not (isinstance(datatype, str) and jsonld_iri.is_well_formed(datatype)):
            return None
        if isinstance(language, str) and not is_language(language):
            return None
        typed = datatype if isinstance(datatype, str) else ""
        direction = item.get("@direction")
        if isinstance(value, str):
            if isinstance(direction, str) and self._direction is not None:
                return self._directed(value, language if isinstance(language, str) else "", direction, graph)
            return literal(
                value, language if isinstance(language, str) else "", "" if typed == f"{XSD}string" else typed
            )
        return scalar(value, typed)

    def _directed(self, text: str, language: str, direction: str, graph: str) -> str:
        if self._direction == "i18n-datatype":
            return literal(text, datatype=f"{_I18N}{language.lower()}_{direction}")
        node = self._blank()
        self._emit(node, f"<{RDF}value>", literal(text), graph)
        if language:
            self._emit(node, f"<{RDF}language>", literal(language.lower()), graph)
        self._emit(node, f"<{RDF}direction>", literal(direction), graph)
        return node

    def resource(self, name: str) -> str | None:
        """The term of an IRI or a blank node identifier."""
        if name.startswith("_:"):
            label = self._labels.get(name)
            if label is None:
                label = self._labels[name] = self._blank()
            return label
        term = jsonld_iri.well_formed_term(name)
        if term is None and self._spaces and (term := jsonld_iri.spaced_term(name, self._spaces)) is not None:
            self.spaced += 1
        return term


def is_language(tag: str) -> bool:
    return len(tag) <= _LONGEST_LANGUAGE and _LANGUAGE.fullmatch(tag) is not None


def scalar(value: Json, datatype: str = "") -> str | None:
    """A JSON boolean or number as a literal; None for anything else."""
    if isinstance(value, bool):
        return literal("true" if value else "false", datatype=datatype or f"{XSD}boolean")
    if isinstance(value, (int, float)):
        text, is_double = integer_or_double(value, datatype == f"{XSD}double")
        return literal(text, datatype=datatype or f"{XSD}{'double' if is_double else 'integer'}")
    return None
