"""XML without a stylesheet of its own, as RDF: every element, attribute and text, in a small vocabulary.

An element is a node; its name is its type, and the property that links its parent to it. An element with nothing but
text is a literal of that property. So `<book id="7"><title>Ulysses</title></book>` reads `[] a x:book;
xa:id "7"; x:title "Ulysses"`. Names keep their namespace; those without one are in `urn:quadloom:xml#`, attributes in
`urn:quadloom:xml:attribute#`. `xml:id` gives a node its IRI, `xml:lang` its texts their language, `xml:base` resolves
references, and `href`, `src` and XLink references are IRIs and links. Order is kept by `position` among siblings that
are nodes. Comments and instructions are left out. One pass without recursion: time is linear, depth is the parser's
own limit. docs/reference/vocabulary.md has the table.
"""

from __future__ import annotations

from urllib.parse import quote

from lxml import etree

from quadloom.documents.syntaxes.html.text import fold
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import TYPE, XSD, iri, join, literal
from quadloom.documents.syntaxes.xml.document_type import DocumentType, document_type
from quadloom.model.link import Link
from quadloom.model.url import resolve

NAMESPACE = "urn:quadloom:xml#"
ATTRIBUTES = "urn:quadloom:xml:attribute#"
SYNTAX = "xml"
_ROOT = f"<{NAMESPACE}root>"
_TEXT = f"<{NAMESPACE}text>"
_POSITION = f"<{NAMESPACE}position>"
_XML = "{http://www.w3.org/XML/1998/namespace}"
_ID, _LANG, _BASE = f"{_XML}id", f"{_XML}lang", f"{_XML}base"
_XLINK = "{http://www.w3.org/1999/xlink}"
_XLINK_TITLE = f"{_XLINK}title"
_REFERENCES = frozenset(("href", "src", f"{_XLINK}href"))
_MOST_NAMESPACES = 50  # of one document that are listed
_TITLES = frozenset(("title", "name", "label"))
_Attributes = list[tuple[str, str]]  # the stubs of lxml allow bytes, which it never gives


class _Place:
    """A step of the walk: the node of an element and what its children inherit."""

    __slots__ = ("base", "language", "node", "position")

    def __init__(self, node: str, language: str, base: str) -> None:
        self.node = node
        self.language = language
        self.base = base
        self.position = 0


def extract(body: bytes, *, url: str) -> bytes:
    """N-Triples of one XML document."""
    context = Context.standalone(body, "xml", url=url)
    read(context)
    return context.sink.nquads()


def read(context: Context) -> None:
    """State the document generically, unless another syntax has stated something or the setting is off."""
    if not context.settings.transform.generic_xml or len(context.sink):
        return
    root = context.root  # entities are expanded within limits
    walk = _Walk(context)
    walk.run(root)
    walk.describe(document_type(context.utf8))


class _Walk:
    __slots__ = (
        "_add", "_attribute_names", "_context", "_depth", "_document", "_elements", "_names", "_spaces", "_texts",
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        self._context = context
        self._add = context.sink.add
        self._names: dict[str, str] = {}
        self._attribute_names: dict[str, str] = {}
        self._texts: list[str] = []
        self._spaces: dict[str, None] = {}
        self._document = iri(context.url) or context.sink.blank()
        self._elements = self._depth = 0

    def run(self, root: etree._Element) -> None:
        above = _Place(self._document, "", self._context.base)
        add, names = self._add, self._names
        place = self._state_node(root, str(root.tag), root.items(), above, _ROOT)  # type: ignore[arg-type]
        open_elements = [(place, iter(root))]
        elements = depth = deepest = 1
        while depth:
            place, children = open_elements[-1]
            for element in children:
                tag = element.tag
                if not isinstance(tag, str):
                    continue
                elements += 1
                attributes: _Attributes = element.items()  # type: ignore[assignment]
                # Text and nothing else, or text with a language: `<title xml:lang="en">…`.
                if not len(element) and (not attributes or (len(attributes) == 1 and attributes[0][0] == _LANG)):
                    if depth == deepest:
                        deepest += 1
                    written = element.text
                    text = fold(written) if written else ""
                    language = (attributes and attributes[0][1]) or place.language
                    add(place.node, names.get(tag) or self._name(tag), literal(text, language))
                    if text:
                        self._note(tag, text)
                    continue
                open_elements.append((self._state_node(element, tag, attributes, place, ""), iter(element)))
                depth += 1
                deepest = max(deepest, depth)
                break
            else:
                open_elements.pop()
                depth -= 1
        self._elements, self._depth = elements, deepest
        facts = self._context.facts
        facts.text = facts.text or "\n".join(self._texts)[: self._context.settings.limits.text_chars]

    def describe(self, kind: DocumentType) -> None:
        """State what the document is like: elements, depth, namespaces, DTD, and entities of other documents."""
        for name, count in (("elements", self._elements), ("depth", self._depth)):
            self._add(self._document, f"<{NAMESPACE}{name}>", literal(str(count), datatype=f"{XSD}integer"))
        if kind.public:
            self._add(self._document, f"<{NAMESPACE}publicId>", literal(kind.public))
        systems = [("dtd", kind.system)] if kind.system else []
        systems += [("externalEntity", entity.system) for entity in kind.entities]
        addresses = [("namespace", space) for space in self._spaces]
        addresses += [(name, join(self._context.base, system.strip())) for name, system in systems]
        for name, address in addresses:  # not IRIs: those would be links, which a crawl follows and importance counts
            self._add(self._document, f"<{NAMESPACE}{name}>", literal(address, datatype=f"{XSD}anyURI"))

    def _state_node(self, element: etree._Element, tag: str, items: _Attributes, parent: _Place, way: str) -> _Place:
        add = self._add
        name = self._names.get(tag) or self._name(tag)
        attributes = dict(items)
        base = join(parent.base, attributes[_BASE]) if _BASE in attributes else parent.base
        node = self._node(attributes[_ID], base) if _ID in attributes else self._context.sink.blank()
        place = _Place(node, attributes.get(_LANG) or parent.language, base)
        add(parent.node, way or name, node)
        add(node, TYPE, name)
        if not way:
            parent.position += 1
            add(node, _POSITION, f'"{parent.position}"^^<{XSD}integer>')
        for key, value in items:
            self._state_attribute(place, key, value, attributes.get(_XLINK_TITLE) or "")
        texts = [element.text, *[child.tail for child in element]]  # not its children's
        if text := fold("".join([one for one in texts if one])):
            add(node, _TEXT, literal(text, place.language))
            self._note(tag, text)
        return place

    def _node(self, identity: str, base: str) -> str:
        return (iri(f"{base.partition('#')[0]}#{identity}") if identity else None) or self._context.sink.blank()

    def _state_attribute(self, place: _Place, key: str, value: str, anchor: str) -> None:
        if key in (_ID, _LANG, _BASE):
            return
        predicate = self._name(key, ATTRIBUTES)
        if key in _REFERENCES:
            target = iri(join(place.base, value.strip()))
            if target:
                self._add(place.node, predicate, target)
                self._link(target[1:-1], anchor)
                return
        self._add(place.node, predicate, literal(value, place.language if " " in value else ""))

    def _link(self, target: str, anchor: str) -> None:
        href = resolve(target)
        if (
            href
            and href != self._context.url
            and len(self._context.links) < self._context.settings.limits.links_per_page
        ):
            self._context.links.append(Link(href, self._context.url, "plain", fold(anchor)[:200]))

    def _name(self, tag: str, default: str = NAMESPACE) -> str:
        names = self._names if default == NAMESPACE else self._attribute_names
        known = names.get(tag)
        if known is not None:
            return known
        space, _, local = tag[1:].rpartition("}") if tag[:1] == "{" else ("", "", tag)
        if space and default == NAMESPACE and len(self._spaces) < _MOST_NAMESPACES:
            self._spaces[space] = None
        full = f"{space}{local}" if space[-1:] in ("#", "/", "=", ":") else f"{space}#{local}"
        name = (iri(full) if space else None) or iri(default + local) or f"<{default}{quote(local, safe='')}>"
        names[tag] = name
        return name

    def _note(self, tag: str, text: str) -> None:
        self._texts.append(text)
        if not self._context.facts.title and tag.rpartition("}")[2].lower() in _TITLES:
            self._context.facts.title = text[:300]
