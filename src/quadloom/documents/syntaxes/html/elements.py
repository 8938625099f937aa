"""The elements of a parsed page by number, and views of its text: a seam with one implementation in C, one in Python.

A page has a thousand elements, and to ask each of them from Python costs more than to parse it. So the questions are
about many elements at once: those with a name, those with an attribute, the values of some attributes of some elements.
What the answers mean is decided by the callers, once, in Python. Both implementations give the same answers; tests
compare them on every page of the corpora. The one in C is optional: see `native_elements`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.syntaxes.html.element_nodes import ElementNodes
from quadloom.documents.syntaxes.html.native_elements import native_elements

Values = tuple[str | None, ...]
Implementation = Literal["native", "python"]

TextLines = tuple[str, list[int], list[int], list[int]]
"""A text; and for each of its lines how many characters it has, how many of them stand in links, and the innermost
element around its first word that is not inline: at most the root of the view."""

BELOW, BESIDE, LEFT_OUT = 1, 2, 3


class TextView(Protocol):
    """The text below one element, the view's root, while parts of the page are left out step by step.

    Whatever is left out is cut off: it has no parent, and it is no part of what holds it.
    """

    def leave_out(self, numbers: Sequence[int], /) -> None:
        """Leave out all that these elements hold. The elements stay, empty."""

    def place(self, number: int, /) -> int:
        """`BELOW` the root, `BESIDE` it (elsewhere in the page), or `LEFT_OUT`."""

    def parent(self, number: int, /) -> int:
        """As `Elements.parent`; -1 if its parent was emptied."""

    def size(self, number: int, /) -> int:
        """Characters of `text`."""

    def text(self, number: int, /) -> str:
        """The text of one element without what was left out."""

    def blocks(self, inline: tuple[str, ...], /) -> TextLines:
        """The text below the root in blocks, one a line, white space folded, without empty ones. Every element
        separates blocks except those with the names in `inline`, which must be among `COMMON_TAGS`. Comments separate
        nothing."""


class Elements(Protocol):
    """Elements are numbers from 0, the root, in document order. The contents of `<template>` are not among them.

    Numbers are returned in document order, each once, and `nesting` wants them so. Texts and attributes are those of
    the tree as it was parsed; nobody may change it. A text view may do so in the end: take views when all else is read.
    """

    @property
    def tree(self) -> LexborHTMLParser:
        """The tree itself, for questions that are seldom asked."""

    def __len__(self) -> int: ...

    def named(self, name: str, /) -> list[int]:
        """Those with a name in lower case. Quick for `COMMON_TAGS`."""

    def having(self, names: tuple[str, ...], /) -> list[int]:
        """Those that have any of these attributes, with or without a value."""

    def carried(self, names: tuple[str, ...], /) -> list[str]:
        """Which of these attributes occur; perhaps more of them. A name that ends with a colon stands for all names
        that begin so."""

    def tag(self, number: int, /) -> str:
        """The name, in lower case for HTML."""

    def parent(self, number: int, /) -> int:
        """-1 for the root."""

    def attributes(self, number: int, /) -> dict[str, str | None]:
        """All attributes of one element; None for one without a value. A new dictionary each time."""

    def values(self, numbers: Sequence[int], names: tuple[str, ...], /) -> list[Values]:
        """For each element the values of these attributes (at most 60): None if it has no such attribute, "" if that
        has no value."""

    def words(self, name: str, wanted: tuple[str, ...], /) -> list[str]:
        """Which of the words occur, between white space, in values of the attribute; perhaps more of them."""

    def text(self, number: int, /) -> str:
        """All text that an element holds."""

    def texts(self, numbers: Sequence[int], most: int, /) -> list[str]:
        """Of each text the first `most` characters behind the white space at its beginning."""

    def nesting(self, numbers: Sequence[int], /) -> list[int]:
        """For each of the elements which of them, by its place in the sequence, holds it most closely; -1 for none."""

    def enclosing(self, numbers: Sequence[int], names: tuple[str, ...], /) -> list[int]:
        """The elements, the root, and those of their ancestors that have any of these attributes; perhaps also other
        ancestors. A name that ends with a colon stands for all names that begin so."""

    def view(self, root: int, /) -> TextView:
        """A view of the text below `root`, with nothing left out."""


def native_state() -> str:
    """Whether elements are read in C, else why not, for `quadloom check`."""
    return _state


@contextmanager
def using(implementation: Implementation) -> Iterator[None]:
    """Read with this implementation meanwhile: tests run with both. Raises LookupError if this machine lacks it."""
    global elements_of
    before = elements_of
    elements_of = implementations[implementation]
    try:
        yield
    finally:
        elements_of = before


_SELECTABLE = re.compile(r"[a-z][a-z0-9-]*\Z")


def nodes_named(tree: LexborHTMLParser, name: str) -> list[LexborNode]:
    """Elements of one name as nodes of the parser, for plug-ins."""
    name = name.lower()
    if _SELECTABLE.match(name):
        return tree.css(name)
    root = tree.root  # no selector can be written for such a name without escapes, such as `dc:title`
    return [node for node in root.traverse() if (node.tag or "").lower() == name] if root is not None else []


_native = native_elements()
_state = "in use" if not isinstance(_native, str) else f"not in use: {_native}"
implementations: dict[Implementation, Callable[[LexborHTMLParser], Elements]] = {"python": ElementNodes}
if not isinstance(_native, str):
    implementations["native"] = _native
elements_of = implementations.get("native", ElementNodes)
"""Returns the elements of a tree, by the quicker implementation that this machine has. Call it by its module's name."""
