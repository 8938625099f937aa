"""The value of an element as a `p-*`, `u-*`, `dt-*` or `e-*` property, by the microformats2 parsing specification.

Items and values are records here, before they become JSON or RDF.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.syntaxes.microformats.dates import assemble, typed
from quadloom.documents.syntaxes.terms import join


@dataclass(slots=True)
class Picture:
    """The value of an `img` that carries more than its address."""

    value: str
    alt: str | None = None
    srcset: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class EmbeddedMarkup:
    """The value of an `e-*` property. The HTML is made from the node on demand: RDF needs only the text."""

    value: str
    node: LexborNode


Plain = str | Picture | EmbeddedMarkup


@dataclass(slots=True)
class MicroformatItem:
    """One microformat. `name` and `url` are its first `p-name` and `u-url`, explicit or implied: what it is worth as a
    value. `bare`: nothing inside it is marked. `by_reference`: a copy, brought in from where its id stands."""

    types: list[str]
    id: str = ""
    properties: dict[str, list[Value]] = field(default_factory=dict)
    children: list[MicroformatItem] = field(default_factory=list)
    name: Value | None = None
    url: Value | None = None
    bare: bool = False
    by_reference: bool = False


@dataclass(slots=True)
class NestedItem:
    """An item as the value of a property, with its value as plain text or address."""

    item: MicroformatItem
    value: str | Picture
    markup: EmbeddedMarkup | None = None


Value = Plain | NestedItem


def plain(value: Value) -> str:
    """The text or address of any value."""
    while not isinstance(value, str):
        value = value.value
    return value


_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SOURCE = re.compile(r"\s*(?:,\s*)*(\S*[^\s,])(?:\s+([^,]*[^,\s]))?\s*(?:,|\Z)")
_SPACE = " \t\n\f\r"
_TOKENS = re.compile(r"[^ \t\n\f\r]+")
_PATTERN_STEPS = 256  # a value class this far below its property is no pattern an author wrote
_URL_ATTRIBUTES = ("href", "src", "cite", "data", "poster", "longdesc")
_REWRITTEN = ",".join(f"[{name}]" for name in _URL_ATTRIBUTES)


def tokens_of(text: str) -> list[str]:
    """The tokens of a `class` or `rel`. Only ASCII white space separates them."""
    return _TOKENS.findall(text)


def resolve(base: str, reference: str) -> str:
    """An absolute URL. One that is absolute already is kept as written, because the suite compares strings."""
    reference = reference.strip(_SPACE)
    if not reference:
        return base
    return reference if _ABSOLUTE.match(reference) else join(base, reference)


def text_of(node: LexborNode, base: str | None = None, *, alternatives: bool = True) -> str:
    """`raw_text_of` without the white space around it."""
    return raw_text_of(node, base, alternatives=alternatives).strip()


def raw_text_of(node: LexborNode, base: str | None = None, *, alternatives: bool = True) -> str:
    """Text without scripts and styles. An image counts as its `alt` if `alternatives` are wanted, and without one as
    its address if a base is given."""
    if node.css_first("img,script,style", default=None) is None:
        return node.text()
    pieces: list[str] = []
    hidden = 0
    for part in node.traverse(include_text=True):
        tag = part.tag
        if tag == "-text":
            parent = part.parent
            if not hidden or parent is None or parent.mem_id != hidden:
                pieces.append(part.text_content or "")
        elif tag in ("script", "style"):
            hidden = part.mem_id
        elif tag == "img" and alternatives:
            attributes = part.attributes
            if "alt" in attributes:
                pieces.append(attributes["alt"] or "")
            elif base is not None and attributes.get("src"):
                pieces.append(f" {resolve(base, attributes['src'] or '')} ")
    return "".join(pieces)


def html_of(node: LexborNode, base: str) -> str:
    """The element's content as HTML, with its addresses made absolute. The page's own tree is left as it is."""
    relative = [
        found
        for found in node.css(_REWRITTEN)
        if any(not _ABSOLUTE.match(found.attributes.get(name) or "a:") for name in _URL_ATTRIBUTES)
    ]
    if relative:
        node = node.clone()
        for found in node.css(_REWRITTEN):
            for name, value in found.attributes.items():
                if name in _URL_ATTRIBUTES and (name != "data" or found.tag == "object"):
                    found.attrs[name] = resolve(base, value or "")
    return (node.inner_html or "").strip()


def picture_of(attributes: dict[str, str | None], base: str) -> str | Picture:
    """An `img` with its alternative text and sizes, or its address if it has neither."""
    address = resolve(base, attributes.get("src") or "")
    sources = attributes.get("srcset")
    if "alt" not in attributes and not sources:
        return address
    sizes: dict[str, str] = {}
    for match in _SOURCE.finditer(sources or ""):
        sizes.setdefault((match[2] or "1x").strip(), resolve(base, match[1]))
    return Picture(address, (attributes["alt"] or "") if "alt" in attributes else None, sizes)


class PropertyReader:
    """Reads property values on one page. `marked` are the elements that are properties or items themselves: the
    value-class pattern does not look into them."""

    __slots__ = ("_base", "_has_pattern", "_marked")

    def __init__(self, tree: LexborHTMLParser, base: str, marked: Set[int]) -> None:
        self._base = base
        self._marked = marked
        self._has_pattern = tree.css_first(".value,.value-title", default=None) is not None

    def text(self, node: LexborNode, attributes: dict[str, str | None]) -> str:
        pattern = self._pattern(node)
        if pattern:
            return _concatenated(pattern)
        tag = node.tag
        if tag in ("abbr", "link") and "title" in attributes:
            return attributes["title"] or ""
        if tag in ("data", "input") and "value" in attributes:
            return attributes["value"] or ""
        if tag in ("img", "area"):
            return attributes.get("alt") or ""
        return text_of(node, self._base)

    def url(self, node: LexborNode, attributes: dict[str, str | None]) -> str | Picture:
        tag = node.tag or ""
        if tag == "img" and "src" in attributes:
            return picture_of(attributes, self._base)
        return resolve(self._base, self._address(node, tag, attributes))

    def _address(self, node: LexborNode, tag: str, attributes: dict[str, str | None]) -> str:
        for tags, name in _ADDRESSES:
            if tag in tags and name in attributes:
                return attributes[name] or ""
        pattern = self._pattern(node)
        if pattern:
            return _concatenated(pattern)
        if tag == "abbr" and "title" in attributes:
            return attributes["title"] or ""
        if tag in ("data", "input") and "value" in attributes:
            return attributes["value"] or ""
        return text_of(node, alternatives=False)

    def date(self, node: LexborNode, attributes: dict[str, str | None]) -> str:
        pattern = self._pattern(node, dates=True)
        if pattern:
            found = assemble(piece for piece, _ in pattern)
            if found is None and typed(whole := _concatenated(pattern))[1]:  # a duration
                found = whole
            if found is not None:  # else the pieces are no dates
                return found
        tag = node.tag
        if tag in ("time", "ins", "del") and "datetime" in attributes:
            return attributes["datetime"] or ""
        if tag == "abbr" and "title" in attributes:
            return attributes["title"] or ""
        if tag in ("data", "input") and "value" in attributes:
            return attributes["value"] or ""
        return text_of(node, alternatives=False)

    def markup(self, node: LexborNode) -> EmbeddedMarkup:
        return EmbeddedMarkup(text_of(node, self._base), node)

    def _pattern(self, node: LexborNode, *, dates: bool = False) -> list[tuple[str, bool]]:
        """The pieces of the value-class pattern, and whether each is text (which may be trimmed)."""
        if not self._has_pattern:
            return []
        pieces: list[tuple[str, bool]] = []
        seen: set[int] = {node.mem_id}
        for found in node.css(".value,.value-title"):
            if found.mem_id not in seen and found.tag != "template" and self._belongs(found, node):
                pieces.append(_piece(found, dates=dates))
            seen.add(found.mem_id)
        return pieces

    def _belongs(self, found: LexborNode, node: LexborNode) -> bool:
        current = found.parent
        for _ in range(_PATTERN_STEPS):
            if current is None:
                return False
            if current.mem_id == node.mem_id:
                return True
            if current.mem_id in self._marked:
                return False
            names = (current.attributes.get("class") or "").split()
            if "value" in names or "value-title" in names:
                return False
            current = current.parent
        return False


_ADDRESSES = (
    (("a", "area", "link"), "href"),
    (("audio", "video", "source", "iframe"), "src"),
    (("video",), "poster"),
    (("object",), "data"),
)


def _piece(node: LexborNode, *, dates: bool) -> tuple[str, bool]:
    attributes = node.attributes
    tag = node.tag
    if "value-title" in (attributes.get("class") or "").split():
        return attributes.get("title") or "", False
    if tag in ("img", "area"):
        return attributes.get("alt") or "", False
    if tag == "data" and "value" in attributes:
        return attributes["value"] or "", False
    if tag == "abbr" and "title" in attributes:
        return attributes["title"] or "", False
    if dates and tag in ("time", "ins", "del") and "datetime" in attributes:
        return attributes["datetime"] or "", False
    return node.text(), True


def _concatenated(pieces: list[tuple[str, bool]]) -> str:
    """All pieces in a row. Text is trimmed at the outer ends only; what an attribute says is kept as it is."""
    joined = "".join(piece for piece, _ in pieces)
    if pieces[0][1]:
        joined = joined.lstrip()
    return joined.rstrip() if pieces[-1][1] else joined


def tag_of(href: str) -> str:
    """The tag a `rel=tag` link stands for: the last segment of its path (rel-tag specification)."""
    path = re.split(r"[?#]", href.strip(_SPACE), maxsplit=1)[0].rstrip("/")
    return unquote(path.rpartition("/")[2])


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
        if child.is_element_node and child.tag != "template":
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
