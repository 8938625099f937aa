"""Text and markup of elements, as literals want them, for both kinds of trees.

XML literals carry the namespaces and prefixes in scope on every outermost element, behind its own attributes, the
default namespace first and the prefixes by name, so that the literal means the same outside of the page (RDFa Core
1.1, step 11). Both writers are loops over an explicit stack: pages with a hundred thousand nested elements exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree
from selectolax.lexbor import LexborNode

from quadloom.syntaxes.rdfa.hosts import XHTML

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


class LexborMarkup:
    """Elements of an HTML parser. All are in the XHTML namespace."""

    def text(self, node: LexborNode) -> str:
        return node.text_lexbor() or ""

    def html(self, node: LexborNode) -> str:
        return node.inner_html or ""

    def has_elements(self, node: LexborNode) -> bool:
        child = node.first_child
        while child is not None:
            if child.is_element_node:
                return True
            child = child.next
        return False

    def xml(self, node: LexborNode, namespaces: Mapping[str, str]) -> str:
        scope = _scope(XHTML, namespaces, ())
        written: list[str] = []
        stack: list[LexborNode | str] = _reversed_children(node)
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
