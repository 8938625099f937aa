"""Content negotiation (RFC 9110 12.5.1): which of the offered media types does the client prefer?

The most specific range decides a type's weight; among equals the order of the offer decides. Parts of an Accept header
that cannot be parsed are ignored: browsers and old clients send odd ones, and `*/*` is what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_MAX_HEADER = 4096  # more of an Accept header than this is noise


class MediaRange(msgspec.Struct, frozen=True):
    """`text/*;q=0.5` → ("text", "*", 0.5)."""

    kind: str
    subtype: str
    weight: float

    def fits(self, media_type: str) -> int:
        """0 = does not match; larger = more specific."""
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == (kind, subtype):
            return 3
        if self.kind == kind and self.subtype == "*":
            return 2
        return 1 if (self.kind, self.subtype) == ("*", "*") else 0


def parse_accept(header: str) -> list[MediaRange]:
    ranges = []
    for part in header[:_MAX_HEADER].split(","):
        media_type, *parameters = (piece.strip() for piece in part.split(";"))
        kind, slash, subtype = media_type.lower().partition("/")
        if media_type == "*":
            kind, slash, subtype = "*", "/", "*"
        if slash and kind and subtype:
            ranges.append(MediaRange(kind, subtype, _weight(parameters)))
    return ranges


def choose(header: str, offered: Sequence[str]) -> str | None:
    """The offered type that the client prefers; None = it accepts none of them (406)."""
    ranges = parse_accept(header)
    if not ranges:
        return offered[0]
    best, best_weight = None, 0.0
    for media_type in offered:
        matches = [(found.fits(media_type), found.weight) for found in ranges if found.fits(media_type)]
        weight = max(matches)[1] if matches else 0.0
        if weight > best_weight:
            best, best_weight = media_type, weight
    return best


def prefers_html(header: str) -> bool:
    """Whether a person is asking: HTML is named, and preferred at least as much as JSON."""
    return "html" in header and choose(header, ("text/html", "application/json")) == "text/html"


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
