"""Which elements the processor sees, and in which order.

Most elements of a page carry no RDFa. Only five attributes make statements: `property`, `typeof`, `vocab`, `rel` and
`rev` (and `role`). Everything else matters only on the way down to one of these, or below a `rel` without a target,
which waits for a subject. So `sparse` lets the parser's own selector find the makers, and `weave` visits them and
their ancestors, nothing more. A property test holds this equal to visiting everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.syntaxes.rdfa.hosts import XHTML
from quadloom.syntaxes.rdfa.markup import XML_NAMESPACE
from quadloom.syntaxes.rdfa.processing import Processor
from quadloom.syntaxes.terms import RDF

_MAKERS = "[property],[typeof],[vocab],[rev]"
# Without a vocabulary these words and CURIEs are all that `rel` can say in HTML; `rel="nofollow"` says nothing.
_SPEAKING_LINKS = '[rel*=":"],[rel~="license" i],[rel~="describedby" i],[rel~="role" i]'
_WAITING = "[rel]:not([href]):not([src]),[rev]:not([href]):not([src])"
_SUBJECTS = "[about],[resource],[href],[src]"


def sparse(tree: LexborHTMLParser, *, roles: bool) -> list[LexborNode]:
    """The elements that can make statements, in document order (an element may stand there twice)."""
    makers = f"{_MAKERS},[role]" if roles else _MAKERS
    found = tree.css(f"{makers},{_SPEAKING_LINKS}")
    if not found:
        return found
    if tree.css_first(_WAITING) is not None:
        return tree.css(f"{makers},[rel],{_SUBJECTS}")
    if tree.css_first("[vocab]") is not None:
        return tree.css(f"{makers},[rel]")
    return found


def everything(tree: LexborHTMLParser) -> Iterable[LexborNode]:
    root = tree.root
    return (node for node in root.traverse() if node.is_element_node) if root is not None else ()


def weave(nodes: Iterable[LexborNode], processor: Processor[LexborNode]) -> None:
    """Enters each node after its ancestors and leaves what is behind. Linear: no element is entered twice."""
    opened: dict[int, int] = {}
    path: list[int] = []
    for node in nodes:
        if node.mem_id in opened:
            continue
        chain = [node]
        above = node.parent
        while above is not None and above.is_element_node and above.mem_id not in opened:
            chain.append(above)
            above = above.parent
        keep = opened.get(above.mem_id, -1) + 1 if above is not None else 0
        while len(path) > keep:
            del opened[path.pop()]
            processor.leave()
        for element in reversed(chain):
            opened[element.mem_id] = len(path)
            path.append(element.mem_id)
            _enter(element, processor)
        if processor.triples.full:
            break
    for _ in path:
        processor.leave()


def _enter(element: LexborNode, processor: Processor[LexborNode]) -> None:
    attributes: dict[str, str] = {}
    namespaces: list[tuple[str, str]] = []
    for name, value in element.attributes.items():
        attributes[name] = value or ""
        if name.startswith("xmlns:"):
            namespaces.append((name[6:], value or ""))
    processor.enter(element, element.tag or "", attributes, namespaces)


def walk(
    root: etree._Element, processor: Processor[etree._Element], embedded: Callable[[etree._Element], None] | None
) -> None:
    """All elements of an XML tree. `embedded` takes RDF/XML blocks, which are then not searched for RDFa."""
    walker = etree.iterwalk(root, events=("start", "end", "start-ns"))
    namespaces: list[tuple[str, str]] = []
    for event, item in walker:
        if event == "start-ns":
            namespaces.append(item)
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
