"""XML for RDFa: hardened, and forgiving about the named characters of HTML.

No network, no DTD, no entity of the document's own is expanded in text (libxml2 limits those in attributes). XHTML
pages say `&nbsp;` without bringing its definition, so HTML's names become character references before parsing.
"""

from __future__ import annotations

import re
from html.entities import name2codepoint

from lxml import etree

_NAMED = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
_KEPT = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})


def parse_xml(body: bytes) -> tuple[etree._Element | None, str]:
    """The root and what is wrong with the document ("" = well-formed). A broken one is read as far as it goes."""
    body = _with_character_references(body)
    problem = ""
    try:
        root = etree.fromstring(body, _parser(recover=False))
    except etree.XMLSyntaxError as error:
        problem = str(error)
        try:
            root = etree.fromstring(body, _parser(recover=True))
        except etree.XMLSyntaxError:
            return None, problem
    if root is not None and root.getroottree().docinfo.internalDTD is not None:
        etree.strip_tags(root, etree.Entity)
    return root, problem


def _parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_pis=False,
    )


def _with_character_references(body: bytes) -> bytes:
    """HTML's named characters as numbers, outside of CDATA sections."""
    if b"&" not in body:
        return body
    written: list[bytes] = []
    place = 0
    while True:
        start = body.find(b"<![CDATA[", place)
        end = body.find(b"]]>", start) if start >= 0 else -1
        if end < 0:
            written.append(_NAMED.sub(_numbered, body[place:]))
            return b"".join(written)
        written.append(_NAMED.sub(_numbered, body[place:start]))
        written.append(body[start:end])
        place = end


def _numbered(match: re.Match[bytes]) -> bytes:
    name = match[1]
    code = None if name in _KEPT else name2codepoint.get(name.decode("ascii"))
    return match[0] if code is None else b"&#%d;" % code
