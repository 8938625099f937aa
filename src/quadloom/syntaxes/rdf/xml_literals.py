"""XML literals of RDF/XML in canonical form.

An rdf:XMLLiteral is exclusive canonical XML: only the namespaces that an element or attribute uses. The native parser
copies every namespace in scope instead, so equal literals differ by the document around them. Before it sees a
document, each property element with parseType="Literal" is turned into one whose text is the canonical XML and whose
datatype is rdf:XMLLiteral, which states the same triple (also where rdf:ID reifies it).
"""

from __future__ import annotations

from lxml import etree

from quadloom.syntaxes.terms import RDF

_PARSE_TYPE = f"{{{RDF}}}parseType"
_MAY_STAND_BESIDE = (f"{{{RDF}}}ID", f"{{{RDF}}}version")
_XML = "{http://www.w3.org/XML/1998/namespace}"
_NOT_LITERAL = ("Resource", "Collection", "Triple")  # any other word means Literal (RDF/XML, 7.2.20)


def with_canonical_literals(body: bytes) -> bytes:
    """`body` with its XML literals spelled out; unchanged where it has none or is not well-formed XML."""
    if b"parseType" not in body:
        return body
    # Entities were measured before (rdf_guards); nothing external is ever loaded.
    parser = etree.XMLParser(resolve_entities=True, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError:
        return body  # the RDF parser says what is wrong, and where
    changed = False
    for element in list(root.iter(etree.Element)):
        kind = element.get(_PARSE_TYPE)
        if kind is not None and kind not in _NOT_LITERAL:
            others = [name for name in element.attrib if name != _PARSE_TYPE and not str(name).startswith(_XML)]
            if all(name in _MAY_STAND_BESIDE for name in others):
                try:
                    _spell_out(element)
                except etree.C14NError:
                    return body  # a namespace without a scheme has no canonical form; the RDF parser's own will do
                changed = True
    return etree.tostring(root.getroottree(), encoding="UTF-8", xml_declaration=False) if changed else body


def _spell_out(element: etree._Element) -> None:
    parts = [_escape(element.text)]
    for child in list(element):
        tail = child.tail
        child.tail = None
        parts.append(_canonical(child))
        parts.append(_escape(tail))
        element.remove(child)
    del element.attrib[_PARSE_TYPE]
    element.set(f"{{{RDF}}}datatype", f"{RDF}XMLLiteral")
    element.text = "".join(parts)


def _canonical(node: etree._Element) -> str:
    # lxml 6 crashes the process when asked for the canonical form of a comment or instruction alone.
    if isinstance(node, etree._Comment):
        comment = str(node.text or "")
        return f"<!--{comment}-->"
    if isinstance(node, etree._ProcessingInstruction):
        target, data = str(node.target), str(node.text or "")
        return f"<?{target} {data}?>" if data else f"<?{target}?>"
    return etree.tostring(node, method="c14n", exclusive=True, with_comments=True).decode()


def _escape(text: str | None) -> str:
    """Character data in canonical XML."""
    return (text or "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
