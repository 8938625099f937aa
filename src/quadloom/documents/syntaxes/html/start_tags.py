"""Start tags of an HTML source with their places, and which element of the tree each of them became.

The tree carries no positions. Both lists are in document order, so an element is found by walking through the tags
until one has the same name and the same attributes. Only pages with a defect pay for this.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

import re2

from quadloom.documents.syntaxes.html.elements import Elements

_ATTRIBUTES = rb"((?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+)(?:>|\Z)"
_TAG = re.compile(rb"<([A-Za-z][^\s/>]*+)" + _ATTRIBUTES)
_RAW_NAMES = rb"script|style|textarea|title|xmp|iframe|noembed|noframes"
# Automata read 2 ns a byte; the module `re` takes ten times as long for a choice of names.
_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_HIDING = re2.compile(rb"(?i)<(?:!--|(?:%b)[\s/>])" % _RAW_NAMES, _BYTES)
_RAW_ENDS = {name: re.compile(rb"</%b(?=[\s/>])" % name, re.IGNORECASE) for name in _RAW_NAMES.split(b"|")}
_ATTRIBUTE = re.compile(rb"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>`]+)))?""")
_LOOK_AHEAD = 200
_TAGS_BEFORE = 3
_BEFORE_NAME = frozenset(b"\t\n\v\f\r \"'/")
_AFTER_NAME = b"\t\n\v\f\r =/>"  # or nothing
_BEFORE_WORD = frozenset(b"\t\n\f\r \"'=:/#")
_AFTER_WORD = b"\t\n\f\r \"'>"
_NOWHERE = (sys.maxsize - 1, sys.maxsize)


class StartTag(NamedTuple):
    """Byte offsets of a tag."""

    start: int
    end: int


def tags_of(source: bytes, elements: Elements, numbers: list[int], attributes: frozenset[str]) -> dict[int, StartTag]:
    """The tag of each element, by its number. `numbers` are all elements that have one of the attributes, in document
    order. An element that no tag explains is left out."""
    names = [elements.tag(number) for number in numbers]
    # What is commented out or in a script seldom looks like one of the tags: then there are as many as elements.
    tags = list(_tags(source, attributes, iter((_NOWHERE,))))
    if [tag[1].decode("latin-1").lower() for tag in tags] == names:
        return {number: StartTag(*tag.span()) for number, tag in zip(numbers, tags, strict=True)}
    return _compared(elements, numbers, _tags(source, attributes, _hidden(source)), attributes)


def attribute_places(source: bytes, attribute: str, value: str) -> list[int]:
    """Where this attribute is written with this value between double quotes. One in a comment, a script or a text is
    among them: compare their number with that of the elements."""
    wanted = f'{attribute}="{value}"'.encode("utf-8", "replace")
    found: list[int] = []
    at = source.find(wanted)
    while at > 0:
        if source[at - 1] in _BEFORE_NAME:
            found.append(at)
        at = source.find(wanted, at + len(wanted))
    return found


def tag_around(source: bytes, place: int) -> StartTag | None:
    """The start tag that holds this place."""
    match = _tag_around(source, place, 0)
    return StartTag(*match.span()) if match is not None else None


def tags_naming(source: bytes, name: str, attributes: tuple[bytes, ...]) -> list[StartTag]:
    """Tags that name this word, with or without a prefix, in one of the attributes; also those in comments."""
    wanted = name.encode("utf-8", "replace")
    found: list[StartTag] = []
    at = source.find(wanted)
    while at > 0:
        if source[at - 1] in _BEFORE_WORD and source[at + len(wanted) : at + len(wanted) + 1] in _AFTER_WORD:
            match = _tag_around(source, at, 0)
            if match is not None and _is_in(source[match.start() : at], attributes):
                found.append(StartTag(*match.span()))
        at = source.find(wanted, at + len(wanted))
    return found


def _is_in(before: bytes, attributes: tuple[bytes, ...]) -> bool:
    """Whether what follows this part of a tag is within the value of one of the attributes."""
    name = before[: before.rfind(b"=")].rstrip()
    return name.lower().endswith(attributes)


def first_tags_of(
    source: bytes, elements: Elements, numbers: list[int], attributes: frozenset[str]
) -> dict[int, StartTag]:
    """As `tags_of`, for the first of those elements: the source is read only as far as it takes."""
    return _compared(elements, numbers, _tags(source, attributes, _hidden(source)), attributes)


def _compared(
    elements: Elements, numbers: list[int], tags: Iterator[re.Match[bytes]], attributes: frozenset[str]
) -> dict[int, StartTag]:
    """As `tags_of`, if the source has other tags than the tree has elements."""
    read = (
        (tag, tag[1].decode("utf-8", "replace").lower(), values)
        for tag in tags
        if (values := _values(tag[2], attributes))
    )
    ahead: list[tuple[re.Match[bytes], str, dict[str, str]]] = []
    found: dict[int, StartTag] = {}
    for number in numbers:
        own = {name: value or "" for name, value in elements.attributes(number).items() if name in attributes}
        element_name = elements.tag(number)
        for at in range(_LOOK_AHEAD):
            if at == len(ahead):
                ahead += islice(read, 1)
            if at == len(ahead):
                break
            tag, name, values = ahead[at]
            if name == element_name and _same(values, own):
                found[number] = StartTag(*tag.span())
                del ahead[: at + 1]
                break
    return found


def _tags(source: bytes, attributes: frozenset[str], hidden: Iterator[tuple[int, int]]) -> Iterator[re.Match[bytes]]:
    """Tags outside of what is hidden that seem to have one of the attributes, in the order of the source.

    The source is searched for names of the attributes, and tags are read only around these: the other tags of a page,
    mostly a thousand, cost nothing.
    """
    begin, end = next(hidden)
    at = 0  # all before is read
    for place in _name_places(source, attributes):
        if place < at:
            continue
        while end <= place:
            at = max(at, end)
            begin, end = next(hidden)
        if begin <= place:
            continue
        match = _tag_around(source, place, at)
        if match is not None:
            at = match.end()
            yield match


def _name_places(source: bytes, attributes: frozenset[str]) -> Iterator[int]:
    """Where names of the attributes are, each with the byte before it. It may also be in a text or a value."""
    lower = source.lower()
    return merge(*(_places_of(lower, name.encode()) for name in sorted(attributes)))


def _places_of(source: bytes, name: bytes) -> Iterator[int]:
    after = len(name)
    at = source.find(name, 1)
    while at >= 0:
        if source[at - 1] in _BEFORE_NAME and source[at + after : at + after + 1] in _AFTER_NAME:
            yield at - 1
        at = source.find(name, at + after)


def _tag_around(source: bytes, place: int, first: int) -> re.Match[bytes] | None:
    """The start tag that holds this place; None if it is in the text between tags. The nearest `<` may be part of a
    value, so others before it are tried."""
    start = place
    for _ in range(_TAGS_BEFORE):
        start = source.rfind(b"<", first, start)
        if start < 0:
            break
        match = _TAG.match(source, start)
        if match is not None and match.end() > place:
            return match
    return None


def _hidden(source: bytes) -> Iterator[tuple[int, int]]:
    """Where comments and the contents of raw elements are, in order; at last a place behind the source."""
    at = 0
    while match := _HIDING.search(source, at):
        begin = match.start()
        tag = _TAG.match(source, begin)
        if tag is None:
            closed = source.find(b"-->", begin + 4)
            at = closed + 3 if closed >= 0 else len(source)
        else:
            begin = tag.end()
            ending = _RAW_ENDS[tag[1].lower()].search(source, begin)
            at = ending.start() if ending else len(source)
        yield begin, at
    yield _NOWHERE


def _values(text: bytes, attributes: frozenset[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        name = match[1].decode("utf-8", "replace").lower()
        if name in attributes and name not in values:
            value = next((group for group in match.groups()[1:] if group is not None), b"")
            values[name] = html.unescape(value.decode("utf-8", "replace"))
    return values


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    return one.keys() == other.keys() and all(value.split() == other[name].split() for name, value in one.items())
