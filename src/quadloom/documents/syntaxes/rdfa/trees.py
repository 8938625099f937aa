"""Both kinds of trees: which elements the processor sees, in which order, and their text and markup as literals.

Most elements of a page carry no RDFa. Only five attributes make statements: `property`, `typeof`, `vocab`, `rel` and
`rev` (and `role`). Everything else matters only on the way down to one of these, or below a `rel` without a target,
which waits for a subject. So `sparse` finds the makers, and `walk_elements` visits them and their ancestors, nothing
more. A property test proves this equal to visiting everything.

XML literals carry the namespaces and prefixes in scope on every outermost element, after its own attributes, the
default namespace first and the prefixes by name, so that the literal means the same outside of the page (RDFa Core 1.1,
step 11). Both writers are loops over an explicit stack: pages with a hundred thousand nested elements exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lxml import etree
from selectolax.lexbor import LexborNode

from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.rdfa.hosts import XHTML
from quadloom.documents.syntaxes.rdfa.processing import Processor
from quadloom.documents.syntaxes.terms import RDF

_MAKERS = ("property", "typeof", "vocab", "rev")
# Without a vocabulary these words and CURIEs are all that `rel` can say in HTML; `rel="nofollow"` says nothing.
_SPEAKING = frozenset(("license", "describedby", "role"))
_SUBJECTS = ("rel", "about", "resource", "href", "src")
# What an ancestor can have that matters for the elements below it.
_HANDED_DOWN = (
    "vocab", "prefix", "lang", "xml:lang", "xml:base", "about", "resource", "href", "src", "rel", "rev", "property",
    "typeof", "role", "xmlns:",
)  # fmt: skip


def sparse(elements: Elements, *, roles: bool) -> list[int]:
    """The elements that can make statements, in document order."""
    makers = (*_MAKERS, "role") if roles else _MAKERS
    scopes = elements.having(("vocab",))
    numbers = elements.having(makers)
    others = _links(elements, scopes)
    if others or scopes or elements.having(("rev",)):
        others += _waiting_and_below(elements)
    return sorted({*numbers, *others}) if others else numbers


def _waiting_and_below(elements: Elements) -> list[int]:
    """Elements whose `rel` or `rev` has no target of its own, so that it takes subjects from below, and what could be
    a subject there."""
    numbers = elements.having(("rel", "rev"))
    rows = zip(numbers, elements.values(numbers, ("href", "src")), strict=True)
    waiting = [number for number, (href, src) in rows if href is None and src is None]
    return _inside(elements, waiting, elements.having(_SUBJECTS)) if waiting else []


def _inside(elements: Elements, scopes: list[int], wanted: list[int]) -> list[int]:
    """The `scopes`, and those of the `wanted` elements that one of them holds."""
    everything = sorted({*scopes, *wanted})
    known = set(scopes)
    inside: list[bool] = []
    for number, holder in zip(everything, elements.nesting(everything), strict=True):
        inside.append(number in known or (holder >= 0 and inside[holder]))
    return [number for number, is_inside in zip(everything, inside, strict=True) if is_inside]


def _links(elements: Elements, scopes: list[int]) -> list[int]:
    """Elements whose `rel` can make statements: by its words, or because one of the `scopes`, elements with a
    vocabulary, gives any word a meaning."""
    numbers = elements.having(("rel",))
    rows = zip(numbers, elements.values(numbers, ("rel",)), strict=True)
    found = [number for number, (rel,) in rows if rel and _speaks(rel)]
    if scopes and numbers:
        linked = set(numbers)
        found += [number for number in _inside(elements, scopes, numbers) if number in linked]
    return found


def _speaks(rel: str) -> bool:
    return ":" in rel or not _SPEAKING.isdisjoint(rel.lower().split())


def walk_elements(elements: Elements, numbers: Iterable[int], processor: Processor[int]) -> None:
    """Enters each element after its ancestors and leaves what is behind. Ancestors without an attribute that matters
    below them are passed over. Linear: no element is entered twice."""
    entered = elements.enclosing(list(numbers), _HANDED_DOWN)
    path: list[int] = []  # places in `entered`
    for place, holder in enumerate(elements.nesting(entered)):
        while path and path[-1] != holder:
            path.pop()
            processor.leave()
        path.append(place)
        _enter(elements, entered[place], processor)
        if processor.triples.full:
            break
    for _ in path:
        processor.leave()


def _enter(elements: Elements, number: int, processor: Processor[int]) -> None:
    attributes: dict[str, str] = elements.attributes(number)  # type: ignore[assignment]  # None = no value; see below
    namespaces: list[tuple[str, str]] = []
    for name, value in attributes.items():
        if value is None:
            attributes[name] = ""
        elif name.startswith("xmlns:"):
            namespaces.append((name[6:], value))
    processor.enter(number, elements.tag(number), attributes, namespaces)


def walk(
    root: etree._Element, processor: Processor[etree._Element], embedded: Callable[[etree._Element], None] | None
) -> None:
    """All elements of an XML tree. `embedded` takes RDF/XML blocks, which are then not searched for RDFa."""
    walker = etree.iterwalk(root, events=("start", "end", "start-ns"))
    namespaces: list[tuple[str, str]] = []
    for event, item in walker:
        if event == "start-ns":
            namespaces.append(item)
        elif not isinstance(item.tag, str):
            continue  # an entity that is not resolved is walked like an element
        elif event == "end":
            processor.leave()
        else:
            if embedded and item.tag == f"{{{RDF}}}RDF":
                embedded(item)
                walker.skip_subtree()
            attributes = {}
            for name, value in item.items():
                if name[0] != "{":
                    attributes[name] = value
                elif name.startswith(f"{{{XML_NAMESPACE}}}"):
                    attributes[f"xml:{name[len(XML_NAMESPACE) + 2 :]}"] = value
            processor.enter(item, _local(item.tag), attributes, namespaces)
            namespaces = []


def _local(tag: str) -> str:
    """The name of an (X)HTML element; elements of other namespaces have no special meaning."""
    if tag[0] != "{":
        return tag
    namespace, _, local = tag[1:].partition("}")
    return local if namespace == XHTML else ""


XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


class LexborMarkup:
    """Elements of an HTML parser. All are in the XHTML namespace."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._nodes: list[LexborNode] = []  # by number; made when markup is asked for, which is rare

    def text(self, node: int) -> str:
        return self._elements.text(node)

    def html(self, node: int) -> str:
        return self._node(node).inner_html or ""

    def has_elements(self, node: int) -> bool:
        return node + 1 < len(self._elements) and self._elements.parent(node + 1) == node

    def _node(self, number: int) -> LexborNode:
        root = self._elements.tree.root
        if not self._nodes and root is not None:
            self._nodes = [node for node in root.traverse() if node.is_element_node]
        return self._nodes[number]

    def xml(self, node: int, namespaces: Mapping[str, str]) -> str:
        scope = _scope(XHTML, namespaces, ())
        written: list[str] = []
        stack: list[LexborNode | str] = _reversed_children(self._node(node))
        outermost = len(stack)
        while stack:
            item = stack.pop()
            outermost = min(outermost, len(stack) + 1)
            if isinstance(item, str):
                written.append(item)
            elif item.is_text_node:
                written.append(_text(item.text_lexbor() or ""))
            elif item.is_comment_node:
                written.append(f"<!--{item.comment_content or ''}-->")
            elif item.is_element_node:
                tag = item.tag or ""
                is_outermost = len(stack) < outermost
                own = "".join(f' {name}="{_quoted(value or "")}"' for name, value in item.attributes.items())
                inner = _reversed_children(item)
                written.append(f"<{tag}{own}{scope if is_outermost else ''}{'>' if inner else '/>'}")
                if inner:
                    stack.append(f"</{tag}>")
                    stack.extend(inner)
        return "".join(written)


class LxmlMarkup:
    """Elements of an XML parser. `fallback` is the namespace of elements that have none."""

    def __init__(self, fallback: str = "") -> None:
        self._fallback = fallback

    def text(self, node: etree._Element) -> str:
        return str(node.xpath("string()"))

    def html(self, node: etree._Element) -> str:
        return self._written(node, {}, declare=False)

    def has_elements(self, node: etree._Element) -> bool:
        return next(node.iterchildren("*"), None) is not None

    def xml(self, node: etree._Element, namespaces: Mapping[str, str]) -> str:
        return self._written(node, namespaces, declare=True)

    def _written(self, node: etree._Element, namespaces: Mapping[str, str], *, declare: bool) -> str:
        written = [_text(node.text or "")]
        depth = 0
        fresh: list[tuple[str, str]] = []
        default = node.nsmap.get(None) or self._fallback
        for event, item in etree.iterwalk(node, events=("start", "end", "start-ns", "comment", "pi")):
            if event == "start-ns":
                fresh.append(item)
            elif event == "start":
                if depth:
                    scope = _scope(default, namespaces, fresh) if depth == 1 else _scope("", {}, fresh)
                    empty = len(item) == 0 and not item.text
                    own = "".join(_attributes(item))
                    written.append(f"<{_name(item)}{own}{scope if declare else ''}{'/>' if empty else '>'}")
                    written.append(_text(item.text or ""))
                fresh = []
                depth += 1
            elif event == "end":
                depth -= 1
                if depth:
                    if len(item) or item.text:
                        written.append(f"</{_name(item)}>")
                    written.append(_text(item.tail or ""))
            elif depth:
                written.append(etree.tostring(item, encoding="unicode", with_tail=False))
                written.append(_text(item.tail or ""))
        return "".join(written)


def _name(element: etree._Element) -> str:
    local = etree.QName(element).localname
    return f"{element.prefix}:{local}" if element.prefix else local


def _attributes(element: etree._Element) -> Iterator[str]:
    for key, content in element.items():
        name, value = str(key), str(content)
        if name[0] == "{":
            namespace, _, local = name[1:].partition("}")
            name = f"{_prefix_of(element, namespace)}:{local}"
        yield f' {name}="{_quoted(value)}"'


def _prefix_of(element: etree._Element, namespace: str) -> str:
    if namespace == XML_NAMESPACE:
        return "xml"
    return next((prefix for prefix, uri in element.nsmap.items() if prefix and uri == namespace), "ns")


def _scope(default: str, namespaces: Mapping[str, str], own: list[tuple[str, str]] | tuple[()]) -> str:
    """Namespace declarations as attributes; `own` are those of the element itself and win."""
    declared = {**namespaces, **{prefix or "": uri for prefix, uri in own}}
    default = declared.pop("", default)
    first = f' xmlns="{_quoted(default)}"' if default else ""
    return first + "".join(f' xmlns:{prefix}="{_quoted(uri)}"' for prefix, uri in sorted(declared.items()))


def _reversed_children(node: LexborNode) -> list[LexborNode | str]:
    children: list[LexborNode | str] = []
    child = node.last_child
    while child is not None:
        children.append(child)
        child = child.prev
    return children


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(value: str) -> str:
    return _text(value).replace('"', "&quot;")
