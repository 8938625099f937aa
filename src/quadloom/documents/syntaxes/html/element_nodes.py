"""The elements of a page through selectolax's nodes: an implementation of `elements.Elements` in Python.

Every question to a node is a call, so few are asked: names come with the one walk that numbers the elements, attributes
are found by the parser's own selectors, and what a text view leaves out is unlinked. This changes the tree, so a second
view of a page parses it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import re2
from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.syntaxes.html.tree import parse_html, tag_ids
from quadloom.documents.syntaxes.signs import signs_in

# The names that our own extractors ask for on every page, by lexbor's numbers.
COMMON_TAGS = tag_ids(
    "a area article base body embed frame iframe img link main meta script title h1 h2 h3 h4 h5 h6 style noscript svg "
    "object select template nav dialog menu button header footer aside form div section ul table abbr acronym b bdi "
    "bdo big cite code data del dfn em font i ins kbd label mark nobr q ruby rb rt s samp small span strike strong sub "
    "sup time tt u var wbr html p li ol dl dd dt tr td th tbody thead tfoot caption pre blockquote address figcaption "
    "label textarea fieldset legend br"
)
TEXT, COMMENT = 2, 4  # LXB_TAG__TEXT, LXB_TAG__EM_COMMENT; elements have greater numbers. A test holds both
# against the library.

LINK = next(number for number, name in COMMON_TAGS.items() if name == "a")
BORDER = "\0"  # between parts of a text; no HTML text can hold it
_BELOW, _BESIDE, _LEFT_OUT = 1, 2, 3


class ElementNodes:
    """`quadloom.documents.syntaxes.html.elements.Elements` over the nodes of one tree."""

    __slots__ = ("_by_name", "_comments", "_nodes", "_numbers", "_signs", "_viewed", "tree")

    def __init__(self, tree: LexborHTMLParser) -> None:
        self.tree = tree
        self._numbers: dict[int, int] | None = None
        self._viewed = False
        self._signs: frozenset[bytes] | None = None
        self._nodes: list[LexborNode] = []
        self._comments: list[LexborNode] = []
        by_tag: dict[int, list[int]] = {number: [] for number in COMMON_TAGS}
        root = tree.root
        if root is not None:
            known, add, number = by_tag.get, self._nodes.append, 0
            for node in root.traverse():
                tag = node.tag_id
                numbers = known(tag)
                if numbers is not None:
                    numbers.append(number)
                elif tag <= COMMENT:
                    if tag == COMMENT:
                        self._comments.append(node)
                    continue
                add(node)
                number += 1
        self._by_name = {name: by_tag[number] for number, name in COMMON_TAGS.items()}

    def __len__(self) -> int:
        return len(self._nodes)

    def named(self, name: str, /) -> list[int]:
        numbers = self._by_name.get(name)
        if numbers is None:
            numbers = self._by_name[name] = [
                number for number, node in enumerate(self._nodes) if (node.tag or "").lower() == name
            ]
        return numbers

    def having(self, names: tuple[str, ...], /) -> list[int]:
        selectors = [f"[{name}]" for name in self.carried(names)]
        if not selectors:
            return []
        nodes = self.tree.css(",".join(selectors))
        if self._may_have(_FOREIGN):  # there `[href]` also selects `xlink:href`
            nodes = [node for node in nodes if not node.attributes.keys().isdisjoint(names)]
        found = {node.mem_id for node in nodes}  # a node comes once for each selector that it matches
        numbers = self._by_address() if found else {}
        return sorted([numbers[address] for address in found])

    def carried(self, names: tuple[str, ...], /) -> list[str]:
        return [name for name in names if self._may_have(_attribute(name))]

    def tag(self, number: int, /) -> str:
        return self._nodes[number].tag or ""

    def parent(self, number: int, /) -> int:
        return self._number_of(self._nodes[number].parent)

    def attributes(self, number: int, /) -> dict[str, str | None]:
        return self._nodes[number].attributes

    def values(self, numbers: Sequence[int], names: tuple[str, ...], /) -> list[tuple[str | None, ...]]:
        nodes = self._nodes
        rows = []
        for number in numbers:
            # All attributes at once: a second one asked for by name costs more, above all if absent (it raises inside).
            own = nodes[number].attributes
            row = tuple(map(own.get, names))
            if None in own.values():  # an attribute without a value
                row = tuple([own[name] or "" if name in own else None for name in names])
            rows.append(row)
        return rows

    def words(self, name: str, wanted: tuple[str, ...], /) -> list[str]:
        if not self._may_have(_words(name, wanted)):
            return []
        found = {word for value in self.values(self.having((name,)), (name,)) for word in (value[0] or "").split()}
        return [word for word in wanted if word in found]

    def text(self, number: int, /) -> str:
        return self._nodes[number].text_lexbor() or ""

    def texts(self, numbers: Sequence[int], most: int, /) -> list[str]:
        nodes = self._nodes
        return [(nodes[number].text_lexbor() or "").lstrip()[:most] for number in numbers]

    def nesting(self, numbers: Sequence[int], /) -> list[int]:
        places = {self._nodes[number].mem_id: place for place, number in enumerate(numbers)}
        above: dict[int, int] = {}  # by element passed on the way up: the place of what holds it
        holders = []
        for number in numbers:
            passed: list[int] = []
            holder = -1
            at = self._nodes[number].parent
            while at is not None:
                address = at.mem_id
                known = places.get(address)
                if known is None:
                    known = above.get(address)
                if known is not None:
                    holder = known
                    break
                passed.append(address)
                at = at.parent
            for address in passed:
                above[address] = holder
            holders.append(holder)
        return holders

    def enclosing(self, numbers: Sequence[int], _names: tuple[str, ...], /) -> list[int]:
        by_address = self._by_address()
        found = set(numbers)
        for number in numbers:
            at = self._nodes[number].parent
            while at is not None:
                above = by_address.get(at.mem_id)
                if above is None or above in found:
                    break
                found.add(above)
                at = at.parent
        found.add(0)
        return sorted(found)

    def view(self, root: int, /) -> NodeView:
        elements = self
        if self._viewed:
            elements = ElementNodes(parse_html(self.tree.raw_html))
        elements._viewed = True
        return NodeView(elements, root)

    def _may_have(self, pattern: bytes) -> bool:
        """Whether the source has something that looks like it. A pass over the source for all patterns that were ever
        asked for costs half of one selector."""
        if pattern not in _asked and len(_asked) < _MOST_ASKED:
            _asked[pattern] = None
            self._signs = None
        if self._signs is None:
            self._signs = frozenset(signs_in(self.tree.raw_html, tuple(_asked)))
        return pattern in self._signs or pattern not in _asked

    def _by_address(self) -> dict[int, int]:
        if self._numbers is None:
            self._numbers = {node.mem_id: number for number, node in enumerate(self._nodes)}
        return self._numbers

    def _number_of(self, node: LexborNode | None) -> int:
        return -1 if node is None else self._by_address().get(node.mem_id, -1)


class NodeView:
    """`quadloom.documents.syntaxes.html.elements.TextView` by changing the tree."""

    __slots__ = ("_elements", "_number", "_places", "_root")

    def __init__(self, elements: ElementNodes, root: int) -> None:
        self._elements = elements
        self._number = root
        self._root = elements._nodes[root]
        self._places = {elements._nodes[0].mem_id: _BESIDE, self._root.mem_id: _BELOW}

    def leave_out(self, numbers: Sequence[int], /) -> None:
        nodes = self._elements._nodes
        for number in numbers:
            # The element itself stays, so that it keeps the texts on both its sides apart. Nothing is freed.
            while (child := nodes[number].child) is not None:
                child.decompose(False)
        if numbers:
            self._places = {nodes[0].mem_id: _BESIDE, self._root.mem_id: _BELOW}

    def place(self, number: int, /) -> int:
        known = self._places
        passed: list[int] = []
        place = _LEFT_OUT
        at = self._elements._nodes[number].parent
        while at is not None:
            address = at.mem_id
            found = known.get(address)
            if found is not None:
                place = found
                break
            passed.append(address)
            at = at.parent
        for address in passed:
            known[address] = place
        return place

    def parent(self, number: int, /) -> int:
        return self._elements.parent(number)

    def size(self, number: int, /) -> int:
        return len(self._elements.text(number))

    def text(self, number: int, /) -> str:
        return self._elements.text(number)

    def blocks(self, inline: tuple[str, ...], /) -> tuple[str, list[int], list[int], list[int]]:
        within_line = {number for number, name in COMMON_TAGS.items() if name in inline}
        numbers = self._elements._by_address()
        lines = _Lines()
        links = 0
        root = self._root.mem_id
        node = self._root.child
        while node is not None:
            tag = node.tag_id
            if tag == TEXT:
                lines.add(node.text_content or "", links > 0, lambda at=node: _holder(at, root, within_line, numbers))  # type: ignore[misc]
            elif tag != COMMENT and tag not in within_line:
                lines.end()
            below = node.child
            if below is not None:
                links += tag == LINK
                node = below
                continue
            while node is not None and node.next is None:
                node = node.parent
                if node is None or node.mem_id == root:
                    return lines.columns()
                tag = node.tag_id
                links -= tag == LINK
                if tag not in within_line:
                    lines.end()
            node = node.next if node is not None else None
        return lines.columns()


class _Lines:
    """The lines of a text, from its pieces."""

    __slots__ = ("_due", "holders", "linked", "sizes", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sizes: list[int] = []
        self.linked: list[int] = []
        self.holders: list[int] = []
        self._due = "\n"  # what comes before the next word

    def end(self) -> None:
        self._due = "\n"

    def add(self, piece: str, linked: bool, holder: Callable[[], int]) -> None:
        piece = piece.replace("\u200b", " ")
        words = " ".join(piece.split())
        if piece[:1].isspace():
            self._due = self._due or " "
        if not words:
            return
        if self._due == "\n":
            self.texts.append(words)
            self.sizes.append(0)
            self.linked.append(0)
            self.holders.append(holder())
        else:
            words = self._due + words
            self.texts[-1] += words
        self.sizes[-1] += len(words)
        self.linked[-1] += len(words) if linked else 0
        self._due = " " if piece[-1].isspace() else ""

    def columns(self) -> tuple[str, list[int], list[int], list[int]]:
        return "\n".join(self.texts), self.sizes, self.linked, self.holders


def _holder(text: LexborNode, root: int, within_line: set[int], numbers: dict[int, int]) -> int:
    """The innermost element around a piece of text, below the root or the root itself, that is not inline."""
    at = text.parent
    while at is not None and at.mem_id != root and at.tag_id in within_line:
        at = at.parent
    return -1 if at is None else numbers[at.mem_id]


_FOREIGN = rb"(?i)<(?:svg|math)[\s/>]"
# Patterns that pages were searched for; callers ask for few and always the same.
_asked: dict[bytes, None] = {}
_MOST_ASKED = 64


@lru_cache(maxsize=256)
def _attribute(name: str) -> bytes:
    return rb"""(?i)[\s"'/]%b""" % name.encode() + (rb"" if name[-1] == ":" else rb"[\s=/>]")


@lru_cache(maxsize=8)
def _words(name: str, wanted: tuple[str, ...]) -> bytes:
    """A pattern for one of the words, or for a value with a character reference, perhaps in the middle of a word."""
    words = "|".join(map(re2.escape, wanted))
    written = rf"(?i:{name})\s*=\s*(?:\"[^\"&]*|'[^'&]*|[^\s>\"'&]*)&"
    return rf"[\s\"'=](?:{words})[\s\"'>]|{written}".encode()


def folded_parts(text: str) -> Iterable[str]:
    """The parts between borders with white space folded, without empty ones."""
    parts = []
    for part in text.replace("\n", " ").replace("\u200b", " ").split(BORDER):  # at once: a page has hundreds of parts
        part = " ".join(part.split()) if "  " in part or not part.isprintable() else part.strip(" ")
        if part:
            parts.append(part)
    return parts
