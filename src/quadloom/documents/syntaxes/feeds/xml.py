"""XML of feeds: parsed strictly, or else repaired and read as far as possible.

Many feeds of the web are not well-formed. What breaks them is mostly the same: HTML's named entities, bare
ampersands, control characters, something printed before the declaration, undeclared prefixes. Each is repaired if
its meaning is certain, then libxml2 recovers from the rest; a finding keeps the place of the first defect.
"""

from __future__ import annotations

import re
from contextlib import suppress
from html.entities import html5

from lxml import etree

from quadloom.documents.syntaxes.guards import check_xml
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.xml.document_type import parse_expanded, without_external
from quadloom.errors import SyntaxInvalid

PREFIXES = {
    "atom": "http://www.w3.org/2005/Atom",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
}
"""What the prefixes of feed modules mean if the author forgot to declare them."""

_MARKUP = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&(?:#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|([A-Za-z][A-Za-z0-9]{1,31});|)", re.S
)
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_XML_ENTITIES = frozenset(("amp", "lt", "gt", "quot", "apos"))
_STRING = etree.XPath("string()")


def tolerant_root(context: Context, syntax: str) -> etree._Element:
    """The root of the tree. Raises `SyntaxInvalid` only if nothing can be read or the entities are an attack."""
    source = context.utf8
    if b"<!ENTITY" in source:
        source = without_external(source)
        check_xml(source)
        with suppress(SyntaxInvalid):
            return parse_expanded(source)
    entities = b"<!DOCTYPE" in source  # Netscape's DTD of RSS 0.91 declares HTML's entities; it is never loaded
    if not entities:
        try:
            return context.root
        except SyntaxInvalid as error:
            context.find(
                "feed-not-well-formed",
                f"{error.message}; repaired and read as far as possible",
                syntax=syntax,
                line=error.line,
                column=error.column,
                advice="check the feed with an XML parser; escape & as &amp;",
            )
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        encoding="utf-8",
    )
    try:
        root = etree.fromstring(repaired(source), parser)
    except etree.XMLSyntaxError:  # recovery forgives everything but a document without a single element
        root = None
    if root is None:
        raise SyntaxInvalid("no element could be read", code="feed-not-well-formed")
    return root


def repaired(source: bytes) -> bytes:
    """The document with certain defects corrected: entities of HTML as characters, bare ampersands escaped."""
    text = source.decode("utf-8", "replace")
    start = text.find("<")
    text = _ILLEGAL.sub("", text[start:] if start > 0 else text)
    return _MARKUP.sub(_repair, text).encode("utf-8", "replace")


def _repair(match: re.Match[str]) -> str:
    text = match.group()
    if text == "&":
        return "&amp;"
    name = match.group(1)
    if text[:2] == "&#":
        return text if _is_character(text[2:-1]) else "\ufffd"
    if name is None or name in _XML_ENTITIES:
        return text
    character = html5.get(f"{name};")
    return character if character and character not in "<&" else f"&amp;{name};"


def _is_character(number: str) -> bool:
    """Whether a numeric reference means a character of XML 1.0. libxml2 lets others through when it recovers."""
    code = int(number[1:], 16) if number[0] in "xX" else int(number)
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF


def expanded(tag: str) -> str:
    """`{namespace}local` of a tag, also if a well-known prefix was not declared."""
    if tag[:1] == "{":
        return tag
    prefix, colon, local = tag.partition(":")
    namespace = PREFIXES.get(prefix) if colon else None
    return f"{{{namespace}}}{local}" if namespace else tag


def text_of(element: etree._Element) -> str:
    """All characters within an element, without those of comments and instructions."""
    if not len(element):
        return (element.text or "").strip()
    return str(_STRING(element)).strip()
