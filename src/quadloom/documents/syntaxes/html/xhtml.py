"""The parsed tree of an HTML page as XHTML, for stylesheets: what Tidy did for MultiCrawler.

The tree is the one that every other extractor reads, so tag soup is put in order as browsers do it. What XML cannot
carry is changed as HTML 13.2.9 ("coercing an HTML DOM into an infoset") suggests: a colon or another sign that a name
may not have becomes `_`, characters that no XML document may have are left out, and so are comments.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

XHTML = "http://www.w3.org/1999/xhtml"
ROOT = f"{{{XHTML}}}html"
_FOREIGN = {"svg": "http://www.w3.org/2000/svg", "math": "http://www.w3.org/1998/Math/MathML"}
_HTML_AGAIN = frozenset(("foreignObject", "foreignobject", "desc", "title", "annotation-xml"))
_PREFIXES = {"xml": "http://www.w3.org/XML/1998/namespace", "xlink": "http://www.w3.org/1999/xlink"}
# Few pages are read as XHTML, so these are compiled when they are first needed: that takes as long as three pages.
_BAD_START = r"^[^A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff]"
_BAD = r"[^A-Za-z0-9_.\-\u00b7\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff]"
_EMPTY = f'<html xmlns="{XHTML}"/>'
_NOT_XML = r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def as_xhtml(tree: LexborHTMLParser) -> etree._Element:
    """The root element, `html` in the namespace of XHTML."""
    root = etree.fromstring(_EMPTY)
    if tree.root is None:
        return root
    elements = {tree.root.mem_id: root}
    _add_attributes(root, tree.root.attributes)
    for node in tree.root.traverse(include_text=True):
        parent = node.parent
        above = elements.get(parent.mem_id) if parent is not None else None
        if above is None:
            continue  # the root itself
        if node.is_text_node:
            _add_text(above, node.text_content or "")
        elif node.is_element_node:
            element = etree.SubElement(above, f"{{{_namespace(node.tag or '', above)}}}{_name(node.tag or '')}")
            _add_attributes(element, node.attributes)
            elements[node.mem_id] = element
    return root


def _namespace(tag: str, above: etree._Element) -> str:
    if tag in _FOREIGN:
        return _FOREIGN[tag]
    outer = etree.QName(above)
    return XHTML if outer.localname in _HTML_AGAIN or not outer.namespace else outer.namespace


def _add_text(element: etree._Element, text: str) -> None:
    text = re.sub(_NOT_XML, "", text)
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def _add_attributes(element: etree._Element, attributes: dict[str, str | None]) -> None:
    for name, value in attributes.items():
        key = _attribute(name)
        if key and key not in element.attrib:
            element.set(key, re.sub(_NOT_XML, "", value or ""))


@lru_cache(maxsize=4096)
def _attribute(name: str) -> str:
    """The name in lxml's notation; empty for declarations of namespaces, which mean nothing in HTML."""
    if name == "xmlns" or name.startswith("xmlns:"):
        return ""
    prefix, colon, local = name.partition(":")
    if colon and prefix in _PREFIXES:
        return f"{{{_PREFIXES[prefix]}}}{_name(local)}"
    return _name(name)


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    name = re.sub(_BAD, "_", name)
    return f"_{name}" if not name or re.match(_BAD_START, name) else name
