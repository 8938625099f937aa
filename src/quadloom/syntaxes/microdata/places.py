"""Where in the source the statements of microdata are: the conversion again, with an eye on the elements."""

from __future__ import annotations

from quadloom.syntaxes.html.start_tags import StartTag, tags_of
from quadloom.syntaxes.microdata.extraction import Conversion, MarkedElement, MarkedPage
from quadloom.syntaxes.microdata.values import Expansions, Languages
from quadloom.syntaxes.places import PlaceKind, SourcePlace, TracingSink, local_name, within
from quadloom.syntaxes.registry import Context

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
        self._source = context.utf8
        first = context.shared.get("microdata")
        if not isinstance(first, Conversion):
            raise TypeError("the page's microdata was not read")
        page = first.document
        sink = TracingSink(blanks)
        conversion = _TracedConversion(page, sink, context.base, Languages(context.all_elements))
        conversion.values = first.values
        conversion.run()
        self._made_by = sink.made_by
        self._items = {subject: number for number, subject in reversed(conversion.subjects.items())}
        numbers = [mark.number for mark in page.marks]
        self._tags = tags_of(self._source, page.elements, numbers, _ATTRIBUTES)

    def find(self, subject: str, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None:
        if kind in ("item", "type"):
            tag = self._tags.get(self._items.get(subject, -1))
            return _typed(self._source, tag, value) if tag else None
        tag = self._tags.get(self._made_by.get((subject, predicate, value), -1))
        if tag is None:
            return None
        name = local_name(predicate)
        if kind == "property":
            return within(self._source, tag.start, tag.end, name, (b"itemprop",)) or SourcePlace(tag.start, tag.end)
        return value_place(self._source, tag, value, _VALUES)


def _typed(source: bytes, tag: StartTag, term: str) -> SourcePlace:
    name = local_name(term)
    found = within(source, tag.start, tag.end, name, (b"itemtype",)) if name else None
    return found or SourcePlace(tag.start, tag.end)


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
