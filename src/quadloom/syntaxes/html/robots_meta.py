"""What a page allows robots to do with it: `<meta name=robots>` and `X-Robots-Tag`.

Both may address all robots or one by name. What is said to us by name replaces what is said to all; within what
applies, every restriction counts, wherever it was said. `none` is noindex and nofollow.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class RobotsDirectives(msgspec.Struct, frozen=True):
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False


_NOTHING = RobotsDirectives()
_WORDS = frozenset(("noindex", "nofollow", "noarchive", "none", "nocache", "all", "index", "follow", "archive"))
# Values with a colon of their own; anything else before a colon is the name of a robot.
_PARAMETERS = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))


def merge(metas: Iterable[tuple[str, str]], headers: Iterable[str], robot: str) -> RobotsDirectives:
    """Directives for `robot` from (name, content) pairs of `<meta>` in lower-case names, and X-Robots-Tag values."""
    robot = robot.lower()
    to_all: set[str] = set()
    to_us: set[str] = set()
    for name, content in metas:
        if name == "robots":
            to_all.update(_split(content))
        elif name == robot:
            to_us.update(_split(content))
    for value in headers:
        _read_header(value, robot, to_all, to_us)
    words = to_us or to_all
    if not words:
        return _NOTHING
    none = "none" in words
    return RobotsDirectives(
        none or "noindex" in words, none or "nofollow" in words, "noarchive" in words or "nocache" in words
    )


def _split(content: str) -> list[str]:
    return [word.strip().lower() for word in content.split(",")]


def _read_header(value: str, robot: str, to_all: set[str], to_us: set[str]) -> None:
    # "noindex, googlebot: nofollow, noarchive": a name holds for all that follows it in the same header.
    into: set[str] | None = to_all
    for part in _split(value):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _PARAMETERS:
            into = to_us if name.strip() == robot else to_all if name.strip() == "robots" else None
            part = rest.strip()
        if into is not None and part in _WORDS:
            into.add(part)
