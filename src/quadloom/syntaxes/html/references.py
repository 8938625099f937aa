"""Turns the hrefs of one page into absolute URLs, fast.

A page has about a hundred references, and a full parse costs 2.4 µs each. Most are plain: absolute, from the root, in
the same folder or in the one above, in characters that the URL standard leaves alone. For those a few cheap tests
prove that joining is concatenation; all others go to the standard's parser. A property test checks that both agree.
"""

from __future__ import annotations

import re
from typing import Literal

from quadloom.model.url import MAX_LENGTH, resolve

# Characters that are kept as they are in path and query. Percent is not among them: `%2e` is a dot in disguise.
_plain = re.compile(r"[A-Za-z0-9/_~!$&()*+,;=:@.?-]*\Z").match
# A host in lower case that ends in letters (no IPv4 in any spelling) and has no label to be checked as IDNA.
# A port is kept as written unless it is the scheme's own; those of five digits are taken up to 59999 only.
_is_plain_origin = re.compile(
    r"https?://(?!xn--)(?:[a-z0-9][a-z0-9-]*+\.(?!xn--))+[a-z]{2,}(?::(?:(?!80\Z|443\Z)[1-9][0-9]{1,3}|[1-5][0-9]{4}))?\Z"
).match
_SHORT = MAX_LENGTH // 2
_REMEMBERED = 200  # characters of an href; longer ones are rare, seldom repeat and could fill the memory


# How a reference joins a base, as far as it alone tells. Pages of a site share most of their hrefs, so it is remembered
# over pages (0.3 µs a known reference instead of 0.9), and emptied when full: about 8 MB.
_Shape = Literal["absolute", "from root", "in folder", "one folder up", "intricate"]
_shapes: dict[str, _Shape] = {}
_MOST_SHAPES = 1 << 16


class ReferenceResolver:
    """Resolves references against one base; every href is looked at once."""

    __slots__ = ("_folder", "_origin", "_upper", "base", "known")

    def __init__(self, base: str) -> None:
        self.base = base
        slash = base.find("/", 8) if base.startswith(("http://", "https://")) else -1
        path = base.partition("?")[0].partition("#")[0]
        # Empty where the base is not hierarchical or too long: then nothing is concatenated.
        usable = slash > 0 and len(base) < _SHORT
        self._origin = base[:slash] if usable else ""
        self._folder = path[: path.rfind("/") + 1] if usable else ""
        # Two dots at the root lead to the root again.
        self._upper = self._folder[: max(self._folder.rfind("/", 0, -1), slash) + 1]
        self.known: dict[str, str | None] = {}  # read by hot loops, which so save a call for hrefs that repeat

    def __call__(self, href: str) -> str | None:
        """Absolute http(s) URL without fragment, or None where the reference leads nowhere."""
        known = self.known
        if href in known:
            return known[href]
        shape = _shapes.get(href) or _shape(href)
        target: str | None
        if shape == "absolute":
            target = href
        elif shape == "from root" and self._origin:
            target = self._origin + href
        elif shape == "in folder" and self._folder:
            target = self._folder + href
        elif shape == "one folder up" and self._upper:
            target = self._upper + href[3:]
        else:
            target = resolve(href, self.base)
        known[href] = target
        return target


def _shape(href: str) -> _Shape:
    shape: _Shape
    if "/." in href or not _plain(href) or len(href) > _SHORT:
        shape = "intricate"
    elif href[:1] == "/":
        shape = "from root" if href[1:2] != "/" else "intricate"
    elif href[:4] == "http" and _has_plain_origin(href):
        shape = "absolute"
    elif ":" not in href and href and href[0] not in ".?":
        shape = "in folder"
    elif href[:3] == "../" and href[3:4] != ".":
        shape = "one folder up"
    else:
        shape = "intricate"
    if len(href) <= _REMEMBERED:
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        _shapes[href] = shape
    return shape


def _has_plain_origin(href: str) -> bool:
    slash = href.find("/", 8)
    return slash > 0 and _is_plain_origin(href[:slash]) is not None
