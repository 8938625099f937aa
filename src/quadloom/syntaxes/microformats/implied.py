"""Name, photo and url of an mf2 item whose author did not mark them: the implied properties.

Each rule looks at the item's element, then at its only fitting child, then at the only fitting child of its only child.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

from quadloom.syntaxes.microformats.items import Picture
from quadloom.syntaxes.microformats.values import picture_of, resolve, text_of

IsRoot = Callable[[str], bool]


def implied_name(node: LexborNode, is_root: IsRoot) -> str:
    tag, attributes = node.tag or "", node.attributes
    if tag in ("img", "area"):
        if "alt" in attributes:
            return (attributes["alt"] or "").strip()
    elif tag == "abbr" and "title" in attributes:
        return (attributes["title"] or "").strip()
    for child in _inner(node, is_root):
        only = _only_child(child)
        if only is None or _is_item(only, is_root):
            continue
        name = "title" if only.tag == "abbr" else "alt"
        if only.tag in ("img", "area", "abbr") and only.attributes.get(name):
            return (only.attributes[name] or "").strip()
    return text_of(node)


def implied_photo(node: LexborNode, base: str, is_root: IsRoot) -> str | Picture | None:
    attributes = node.attributes
    if node.tag == "img" and "src" in attributes:
        return picture_of(attributes, base)
    if node.tag == "object" and "data" in attributes:
        return resolve(base, attributes["data"] or "")
    for child in _inner(node, is_root):
        image = _only_of_type(child, "img", "src", is_root)
        if image is not None:
            return picture_of(image.attributes, base)
        thing = _only_of_type(child, "object", "data", is_root)
        if thing is not None:
            return resolve(base, thing.attributes["data"] or "")
    return None


def implied_url(node: LexborNode, base: str, is_root: IsRoot) -> str | None:
    attributes = node.attributes
    if node.tag in ("a", "area") and "href" in attributes:
        return resolve(base, attributes["href"] or "")
    for child in _inner(node, is_root):
        for tag in ("a", "area"):
            link = _only_of_type(child, tag, "href", is_root)
            if link is not None:
                return resolve(base, link.attributes["href"] or "")
    return None


def _inner(node: LexborNode, is_root: IsRoot) -> Iterator[LexborNode]:
    yield node
    only = _only_child(node)
    if only is not None and not _is_item(only, is_root):
        yield only


def _is_item(node: LexborNode, is_root: IsRoot) -> bool:
    return is_root(node.attributes.get("class") or "")


def _only_child(node: LexborNode) -> LexborNode | None:
    found: LexborNode | None = None
    child = node.first_child
    while child is not None:
        if child.is_element_node:
            if found is not None:
                return None
            found = child
        child = child.next
    return found


def _only_of_type(node: LexborNode, tag: str, attribute: str, is_root: IsRoot) -> LexborNode | None:
    found: LexborNode | None = None
    child = node.first_child
    while child is not None:
        if child.tag == tag:
            if found is not None:
                return None
            found = child
        child = child.next
    if found is None or attribute not in found.attributes or _is_item(found, is_root):
        return None
    return found
