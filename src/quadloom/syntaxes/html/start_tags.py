"""Start tags of an HTML source with their places, and which element of the tree each of them became.

The tree carries no positions. Both lists are in document order, so an element is found by walking through the tags
until one has the same name and the same attributes. Only pages with a defect pay for this.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

from selectolax.lexbor import LexborNode

_TAG = re.compile(rb"<(?:!--|([A-Za-z][^\s/>]*+)((?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+)(?:>|\Z))")
_RAW = {
    name.encode(): re.compile(rb"</%b(?=[\s/>])" % name.encode(), re.IGNORECASE)
    for name in ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"]
}
_ATTRIBUTE = re.compile(rb"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>`]+)))?""")
_LOOK_AHEAD = 200


class StartTag(NamedTuple):
    """Byte offsets of the tag, its name in lower case, and the values of the attributes that were asked for."""

    start: int
    end: int
    name: str
    attributes: dict[str, str]


def start_tags(source: bytes, attributes: frozenset[str]) -> list[StartTag]:
    """Tags with at least one of the attributes, in the order of the source. Comments and scripts hold no tags."""
    wanted = re.compile(rb"(?i)[\s\"'/](?:%b)(?=[\s=/>]|\Z)" % b"|".join(name.encode() for name in sorted(attributes)))
    found: list[StartTag] = []
    at = 0
    while match := _TAG.search(source, at):
        at = match.end()
        if match[1] is None:
            closed = source.find(b"-->", match.start() + 4)
            at = closed + 3 if closed >= 0 else len(source)
            continue
        if wanted.search(match[2]):
            values = _values(match[2], attributes)
            if values:
                found.append(StartTag(match.start(), at, match[1].decode("utf-8", "replace").lower(), values))
        ending = _RAW.get(match[1].lower())
        if ending is not None:
            end = ending.search(source, at)
            at = end.start() if end else len(source)
    return found


def _values(text: bytes, attributes: frozenset[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        name = match[1].decode("utf-8", "replace").lower()
        if name in attributes and name not in values:
            value = next((group for group in match.groups()[1:] if group is not None), b"")
            values[name] = html.unescape(value.decode("utf-8", "replace"))
    return values


def tags_of(nodes: Iterable[LexborNode], tags: list[StartTag], attributes: frozenset[str]) -> dict[int, StartTag]:
    """The tag of each node, by the node's `mem_id`. A node that no tag explains is left out."""
    found: dict[int, StartTag] = {}
    place = 0
    for node in nodes:
        if node.mem_id in found:
            continue
        own = {name: value or "" for name, value in node.attributes.items() if name in attributes}
        for number in range(place, min(place + _LOOK_AHEAD, len(tags))):
            tag = tags[number]
            if tag.name == node.tag and _same(tag.attributes, own):
                found[node.mem_id] = tag
                place = number + 1
                break
    return found


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    return one.keys() == other.keys() and all(value.split() == other[name].split() for name, value in one.items())
