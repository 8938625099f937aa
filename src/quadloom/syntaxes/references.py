"""Turns the hrefs of one page into absolute URLs, fast.

A page has about a hundred references, and a full parse costs 2.4 µs each. Most are plain: absolute, from the root or in
the same folder, in characters that the URL standard leaves alone. For those a few cheap tests prove that joining is
concatenation; all others go to the standard's parser. A property test checks that both ways agree.
"""

from __future__ import annotations

import re

from quadloom.model.url import MAX_LENGTH, resolve

# Characters that are kept as they are in path and query. Percent is not among them: `%2e` is a dot in disguise.
_plain = re.compile(r"[A-Za-z0-9/_~!$&()*+,;=:@.?-]*\Z").match
# A host in lower case that ends in letters (no IPv4 in any spelling) and has no label to be checked as IDNA.
_is_plain_origin = re.compile(r"https?://(?!xn--)(?:[a-z0-9][a-z0-9-]*+\.(?!xn--))+[a-z]{2,}\Z").match
_SHORT = MAX_LENGTH // 2


class Resolver:
    """Resolves references against one base; every href, and every origin, is looked at once."""

    __slots__ = ("_folder", "_origin", "_origins", "base", "known")

    def __init__(self, base: str) -> None:
        self.base = base
        slash = base.find("/", 8) if base.startswith(("http://", "https://")) else -1
        path = base.partition("?")[0].partition("#")[0]
        # Empty where the base is not hierarchical or too long: then nothing is concatenated.
        usable = slash > 0 and len(base) < _SHORT
        self._origin = base[:slash] if usable else ""
        self._folder = path[: path.rfind("/") + 1] if usable else ""
        self.known: dict[str, str | None] = {}  # read by hot loops, which so save a call for hrefs that repeat
        self._origins: dict[str, bool] = {}

    def __call__(self, href: str) -> str | None:
        """Absolute http(s) URL without fragment, or None where the reference leads nowhere."""
        known = self.known
        if href in known:
            return known[href]
        target: str | None
        if "/." in href or not _plain(href) or len(href) > _SHORT:
            target = resolve(href, self.base)
        elif href[:1] == "/":
            target = self._origin + href if self._origin and href[1:2] != "/" else resolve(href, self.base)
        elif href[:4] == "http" and self._has_plain_origin(href):
            target = href
        elif self._folder and ":" not in href and href[:1] not in ".?":
            target = self._folder + href
        else:
            target = resolve(href, self.base)
        known[href] = target
        return target

    def _has_plain_origin(self, href: str) -> bool:
        slash = href.find("/", 8)
        if slash < 0:
            return False
        origin = href[:slash]
        plain = self._origins.get(origin)
        if plain is None:
            plain = self._origins[origin] = _is_plain_origin(origin) is not None
        return plain
