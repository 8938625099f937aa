"""Where in the source the statements of RDFa are.

Tags that mention a name are found by a search. If the page has as many statements with that name, the first tag made
the first statement, and so on. Otherwise the extraction is done again, with an eye on the elements.
"""

from __future__ import annotations

from functools import cached_property

from quadloom.documents.syntaxes.html.start_tags import StartTag, tags_naming, tags_of
from quadloom.documents.syntaxes.iri import BaseIri
from quadloom.documents.syntaxes.microdata.source_positions import value_place
from quadloom.documents.syntaxes.rdfa.frames import Triples
from quadloom.documents.syntaxes.rdfa.hosts import HOSTS
from quadloom.documents.syntaxes.rdfa.names import Names
from quadloom.documents.syntaxes.rdfa.processing import Attributes, Namespaces, Processor
from quadloom.documents.syntaxes.rdfa.trees import LexborMarkup, sparse, walk_elements
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.sink import Sink
from quadloom.documents.syntaxes.source_positions import PlaceKind, SourcePlace, local_name, type_place, within
from quadloom.documents.syntaxes.terms import TYPE
from quadloom.model.quads import Triple

_ATTRIBUTES = ("property", "typeof", "rel", "rev", "vocab", "about", "resource")
_VALUES = (b"content=", b"datetime=", b"resource=", b"href=", b"src=")
_NAMING = (b"property", b"rel", b"rev")
_TYPE = (b"typeof",)


class _TracedTriples(Triples):
    def __init__(self) -> None:
        super().__init__()
        self.at = -1
        self.made_by: dict[tuple[str, str, str], int] = {}
        self.typed_by: dict[str, int] = {}

    def add(self, subject: str, predicate: str, value: str) -> None:
        self.made_by.setdefault((subject, predicate, value), self.at)
        if predicate == TYPE:
            self.typed_by.setdefault(subject, self.at)
        super().add(subject, predicate, value)


class _TracedProcessor(Processor[int]):
    def enter(self, node: int, tag: str, attributes: Attributes, namespaces: Namespaces = ()) -> None:
        triples = self.triples
        if isinstance(triples, _TracedTriples):
            triples.at = node
        super().enter(node, tag, attributes, namespaces)


class RdfaPlaces:
    """Places of statements in HTML. `blanks`: how many blank nodes the page had before its RDFa."""

    def __init__(self, context: Context, blanks: int) -> None:
        self._context = context
        self._blanks = blanks
        self._source = context.utf8
        # Both are asked for again by each finding about the same name.
        self._named: dict[tuple[str, tuple[bytes, ...]], list[StartTag]] = {}
        self._alike: dict[tuple[str, str], dict[Triple, int]] = {}

    def find(self, subject: str, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None:
        if kind in ("item", "type"):
            tag = self._counted((subject, TYPE, value), value, local_name(value), _TYPE)
            tag = tag or self._page.typed(subject)
            return type_place(self._source, *tag, value, b"typeof") if tag else None
        name = local_name(predicate)
        tag = self._counted((subject, predicate, value), "", name, _NAMING)
        tag = tag or self._page.stating(subject, predicate, value)
        if tag is None:
            return None
        if kind == "property":
            place = within(self._source, tag.start, tag.end, name, _NAMING)
            return place or SourcePlace(tag.start, tag.end)
        return value_place(self._source, tag, value, _VALUES)

    def _counted(self, statement: Triple, value: str, name: str, attributes: tuple[bytes, ...]) -> StartTag | None:
        """The tag of a statement, if there are as many tags with the name as statements with its property. `value`: of
        all these statements, if it is part of the name."""
        tags = self._named.get((name, attributes))
        if tags is None:
            tags = self._named[name, attributes] = tags_naming(self._source, name, attributes) if name else []
        if len(tags) < 2:
            return tags[0] if tags else None
        key = (statement[1], value)
        alike = self._alike.get(key)
        if alike is None:
            stated = [one for one in self._context.sink.triples if one[1] == key[0] and (not value or one[2] == value)]
            alike = self._alike[key] = {one: number for number, one in enumerate(stated)}
        number = alike.get(statement)
        return tags[number] if number is not None and len(alike) == len(tags) else None

    @cached_property
    def _page(self) -> _TracedPage:
        return _TracedPage(self._context, self._blanks)


class _TracedPage:
    """The page's RDFa with the tag of every statement."""

    def __init__(self, context: Context, blanks: int) -> None:
        elements = context.all_elements
        sink = Sink()
        sink.blanks = blanks
        document = BaseIri.of_attribute(context.url)
        base = document if context.base == context.url else BaseIri.of_attribute(context.base)
        host = HOSTS["html5"]
        names = Names(document, host.terms, sink.blank, None)
        processor = _TracedProcessor(host, LexborMarkup(elements), names, base, sink.blank, roles=False)
        self._triples = processor.triples = _TracedTriples()
        walk_elements(elements, sparse(elements, roles=False), processor)
        processor.finish()
        self._tags = tags_of(context.utf8, elements, elements.having(_ATTRIBUTES), frozenset(_ATTRIBUTES))

    def typed(self, subject: str) -> StartTag | None:
        return self._tags.get(self._triples.typed_by.get(subject, -1))

    def stating(self, subject: str, predicate: str, value: str) -> StartTag | None:
        return self._tags.get(self._made_by(subject, predicate, value))

    def _made_by(self, subject: str, predicate: str, value: str) -> int:
        made_by = self._triples.made_by
        found = made_by.get((subject, predicate, value))
        if found is None and value.startswith('"'):  # the language may come from the transport
            text = value[: value.rindex('"') + 1]
            found = next(
                (at for (s, p, o), at in made_by.items() if s == subject and p == predicate and o.startswith(text)), -1
            )
        return -1 if found is None else found
