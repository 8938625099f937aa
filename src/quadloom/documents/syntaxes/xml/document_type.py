"""The document type of XML, and its entities: what is expanded, what is only recorded, and what is refused.

Internal entities (`<!ENTITY x "text">`) are part of the document and are expanded, within the limits of `check_xml`.
Entities and DTDs that are elsewhere are never loaded while a page is parsed: a reference to one reads as nothing, and
the page has a finding that names it.
"""

from __future__ import annotations

import re

import msgspec
from lxml import etree

from quadloom.documents.syntaxes.guards import check_xml
from quadloom.errors import SyntaxInvalid

_DOCTYPE = re.compile(
    rb"""<!DOCTYPE\s+([^\s\[>]+)\s*(?:PUBLIC\s*(?:"([^"]*)"|'([^']*)')\s*|SYSTEM\s*)?(?:"([^"]*)"|'([^']*)')?\s*(\[)?"""
)
_EXTERNAL = re.compile(
    rb"""<!ENTITY\s+(%\s+)?([^\s"'<>&;%]+)\s+(?:SYSTEM|PUBLIC\s+(?:"[^"]*"|'[^']*'))\s*(?:"([^"]*)"|'([^']*)')[^>]*>"""
)
_PARAMETER_REFERENCE = re.compile(rb"%[^\s;%<>\"']{1,200};")
_MOST_NAMED = 20  # external entities of a page that are named
_HEAD = 1 << 20  # a document type begins within this many bytes


class ExternalEntity(msgspec.Struct, frozen=True):
    """An entity that another document defines. `is_parameter`: it belongs to the DTD, not to the text."""

    name: str
    system: str
    is_parameter: bool = False


class DocumentType(msgspec.Struct, frozen=True):
    """What `<!DOCTYPE …>` says. `name` is empty if there is none."""

    name: str = ""
    public: str = ""
    system: str = ""
    entities: tuple[ExternalEntity, ...] = ()


def parse_xml(source: bytes) -> etree._Element:
    """The root of XML in UTF-8. Raises `SyntaxInvalid` if it is not well-formed or its entities are an attack."""
    if b"<!ENTITY" not in source:
        return _parsed(source, expand=False)
    own = without_external(source)
    check_xml(own)
    try:
        return parse_expanded(own)
    except SyntaxInvalid:
        # An external DTD may define what the text refers to; such references stay in the tree as they are.
        return _parsed(own, expand=False)


def parse_expanded(source: bytes) -> etree._Element:
    """The root of a source that has passed `without_external` and `check_xml`; an unknown entity is an error."""
    return _parsed(source, expand=True)


def document_type(source: bytes) -> DocumentType:
    """The document type of XML in UTF-8."""
    found = _DOCTYPE.search(source[:_HEAD]) if b"<!DOCTYPE" in source[:_HEAD] else None
    if found is None:
        return DocumentType()
    subset = source[found.end() : _end_of_subset(source, found.end())] if found.group(6) else b""
    entities = [
        ExternalEntity(_text(one.group(2)), _text(one.group(3) or one.group(4)), bool(one.group(1)))
        for one in _EXTERNAL.finditer(subset)
    ]
    return DocumentType(
        _text(found.group(1)),
        _text(found.group(2) or found.group(3)),
        _text(found.group(4) or found.group(5)),
        tuple(entities[:_MOST_NAMED]),
    )


def _parsed(source: bytes, *, expand: bool) -> etree._Element:
    # No DTD, no network, no huge trees: XML from the web can otherwise expand to gigabytes or read local files (XXE).
    # `collect_ids=False` must not be set: with it, libxml2 loads external DTDs whatever `load_dtd` says (lxml 6.1).
    parser = etree.XMLParser(
        resolve_entities="internal" if expand else False,  # type: ignore[arg-type]  # the stubs are older
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        encoding="utf-8",
    )
    try:
        root = etree.fromstring(source.lstrip(), parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        raise SyntaxInvalid(f"not well-formed: {error.msg}", code="xml", line=line or 0, column=column or 0) from error
    if root is None:
        raise SyntaxInvalid("no root element", code="xml")
    return root


def without_external(source: bytes) -> bytes:
    """The document with its external entities declared as empty; the others can then be expanded. Lines keep their
    numbers."""
    found = _DOCTYPE.search(source[:_HEAD])
    if found is None or not found.group(6):
        return source
    end = _end_of_subset(source, found.end())
    subset = _EXTERNAL.sub(_emptied, source[found.end() : end])
    return source[: found.end()] + _PARAMETER_REFERENCE.sub(b"", subset) + source[end:]


def _emptied(declaration: re.Match[bytes]) -> bytes:
    lines = b"\n" * declaration.group().count(b"\n")
    return lines if declaration.group(1) else b'<!ENTITY %s "">%s' % (declaration.group(2), lines)


def _end_of_subset(source: bytes, start: int) -> int:
    """Where the internal subset ends: `]` and `>`, outside quotes and comments."""
    for mark in re.finditer(rb"<!--.*?(?:-->|\Z)|\"[^\"]*\"|'[^']*'|\]\s*>", source[start:], re.DOTALL):
        if mark.group()[:1] == b"]":
            return start + mark.start()
    return len(source)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")[:2000]
