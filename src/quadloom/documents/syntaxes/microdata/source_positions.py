"""Where in the source the statements of microdata are.

The page's conversion knows which element is which item and what each element says. The tag of an element is found by
counting: of n elements with the same attribute it is the k-th, so its tag is the k-th of n equal attributes in the
source. If the source has another number of them, or the statement came through `itemref`, the conversion is done again
with an eye on the elements, and all tags are compared with the tree.
"""

from __future__ import annotations

from functools import cached_property

from quadloom.documents.syntaxes.html.start_tags import StartTag, attribute_places, tag_around, tags_of
from quadloom.documents.syntaxes.microdata.extraction import Conversion, MarkedElement, MarkedPage
from quadloom.documents.syntaxes.microdata.values import Expansions, Languages
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.source_positions import (
    PlaceKind,
    SourcePlace,
    TracingSink,
    local_name,
    type_place,
    within,
)
from quadloom.model.quads import Triple

_ATTRIBUTES = frozenset(("itemscope", "itemprop", "itemtype", "itemprop-reverse"))
_VALUES = (b"content=", b"datetime=", b"href=", b"src=", b"value=", b"data=")


class _TracedConversion(Conversion):
    def __init__(self, page: MarkedPage, sink: TracingSink, base: str, languages: Languages) -> None:
        super().__init__(page, sink, base, languages)
        self.tracing = sink

    def _statements(self, subject: str, vocabulary: str, expansions: Expansions, element: MarkedElement) -> None:
        self.tracing.at = element.number
        super()._statements(subject, vocabulary, expansions, element)


class MicrodataPlaces:
    """Places of statements. `blanks`: how many blank nodes the page had before its microdata."""

    def __init__(self, context: Context, blanks: int) -> None:
        first = context.shared.get("microdata")
        if not isinstance(first, Conversion):
            raise TypeError("the page's microdata was not read")
        self._context = context
        self._blanks = blanks
        self._source = context.utf8
        self._first = first
        self._marks = {mark.number: mark for mark in first.document.marks}
        self._tags: dict[int, StartTag] | None = None
        self._alike: dict[tuple[str, str], dict[int, int]] = {}  # by attribute and its value

    def find(self, subject: str, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None:
        # With an itemid, several elements can be one subject.
        items = [self._marks[number] for number, named in self._first.subjects.items() if named == subject]
        if kind in ("item", "type"):
            tag = self._tag(items[0], "itemtype") if items else None
            return type_place(self._source, *tag, value, b"itemtype") if tag else None
        element = next((one for item in items if (one := self._stating(item, predicate, value)) is not None), None)
        if element is None:
            element = self._marks.get(self._made_by.get((subject, predicate, value), -1))
        tag = self._tag(element, "itemprop") if element is not None else None
        if tag is None:
            return None
        name = local_name(predicate)
        if kind == "property":
            return within(self._source, tag.start, tag.end, name, (b"itemprop",)) or SourcePlace(tag.start, tag.end)
        return value_place(self._source, tag, value, _VALUES)

    def _stating(self, item: MarkedElement, predicate: str, value: str) -> MarkedElement | None:
        """The element within the item that says this."""
        name, whole = local_name(predicate), predicate[1:-1]
        for element in item.held:
            if name in element.names or whole in element.names:
                said = self._first.subjects if element.is_item else self._first.values
                if said.get(element.number) == value:
                    return element
        return None

    @cached_property
    def _made_by(self) -> dict[Triple, int]:
        """Which element makes a statement, by another conversion."""
        sink, context = TracingSink(self._blanks), self._context
        conversion = _TracedConversion(self._first.document, sink, context.base, Languages(context.all_elements))
        conversion.values = self._first.values
        conversion.run()
        return sink.made_by

    def _tag(self, element: MarkedElement, attribute: str) -> StartTag | None:
        if self._tags is None:
            written = element.attributes.get(attribute)
            if written:
                alike = self._alike.get((attribute, written))
                if alike is None:
                    alike = self._alike[attribute, written] = self._counted(attribute, written)
                if alike:
                    return tag_around(self._source, alike[element.number])
            self._tags = tags_of(self._source, self._first.document.elements, list(self._marks), _ATTRIBUTES)
        return self._tags.get(element.number)

    def _counted(self, attribute: str, written: str) -> dict[int, int]:
        """Where all elements with this attribute have it; empty if the source has more or fewer."""
        marks = [one.number for one in self._marks.values() if one.attributes.get(attribute) == written]
        places = attribute_places(self._source, attribute, written)
        return dict(zip(marks, places, strict=True)) if len(places) == len(marks) else {}


def value_place(source: bytes, tag: StartTag, value: str, attributes: tuple[bytes, ...]) -> SourcePlace:
    """The value in an attribute of the tag, or in the text after it; else the tag."""
    if not value.startswith('"'):
        lower = source[tag.start : tag.end].lower()
        for attribute in attributes[2:]:
            at = lower.find(attribute)
            if at >= 0:
                return SourcePlace(tag.start + at + len(attribute), tag.end)
        return SourcePlace(tag.start, tag.end)
    text = value[1 : value.rindex('"')].strip()
    found = within(source, tag.start, tag.end, text, attributes) if text else None
    if found is None and text:
        at = source.find(text.encode("utf-8", "replace"), tag.end, tag.end + len(text) * 4 + 400)
        found = SourcePlace(at, at + len(text.encode("utf-8", "replace"))) if at >= 0 else None
    return found or SourcePlace(tag.start, tag.end)
