"""Lexbor's numbers of tag names. Comparing numbers costs a third of comparing names, and a walk compares many."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

TEXT = 2  # LXB_TAG__TEXT; a test holds it against the library

# Names that the HTML parser takes only in a certain place.
_PLACES = {"frame": "<frameset><frame>"}


def tag_ids(names: str) -> dict[int, str]:
    """Number to name, for names separated by spaces. Asked of the library, so that a new version may renumber."""
    numbers: dict[int, str] = {}
    for name in names.split():
        node = LexborHTMLParser(_PLACES.get(name, f"<{name}>")).css_first(name)
        if node is not None:
            numbers[node.tag_id] = name
    return numbers
