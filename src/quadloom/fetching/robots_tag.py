"""`X-Robots-Tag` headers and `<meta name="robots">`: what a page says about itself.

A value is a list of rules, optionally addressed: `noindex, nofollow`, `otherbot: noindex`,
`quadloom: none, unavailable_after: 25 Jun 2030 15:00:00 GMT`. An address holds until the next one in the same value.
Rules addressed to us are added to those for everyone: the strictest wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

_VALUED = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_ADDRESS = re.compile(r"^\s*([A-Za-z][A-Za-z0-9_-]*)\s*:(.*)$", re.DOTALL)
_SPLIT = re.compile(r",(?!\s*\d{1,2}[\s-])")  # not the comma in `Sun, 25 Jun 2030`
_MAX_VALUE = 4096


class RobotsTag(msgspec.Struct, frozen=True, array_like=True):
    """What must not be done with a page."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False

    def __or__(self, other: RobotsTag) -> RobotsTag:
        return RobotsTag(
            self.noindex or other.noindex, self.nofollow or other.nofollow, self.noarchive or other.noarchive
        )


def of_headers(headers: Iterable[tuple[str, str]], product: str, now: float) -> RobotsTag:
    """All `X-Robots-Tag` headers of a response together (names in lower case)."""
    tag = RobotsTag()
    for name, value in headers:
        if name == "x-robots-tag":
            tag |= parse(value, product, now)
    return tag


def of_meta(name: str, content: str, product: str, now: float) -> RobotsTag:
    """A `<meta>` element: its name is `robots` for everyone or a product token."""
    if name.strip().lower() not in ("robots", product.lower()):
        return RobotsTag()
    return parse(content, product, now)


def parse(value: str, product: str, now: float) -> RobotsTag:
    """One value. `now` decides whether `unavailable_after` has come: then the page is as good as noindex."""
    noindex = nofollow = noarchive = False
    addressed = True
    for part in _SPLIT.split(value[:_MAX_VALUE]):
        match = _ADDRESS.match(part)
        if match and match.group(1).lower() not in _VALUED:
            addressed = match.group(1).lower() == product.lower()
            part = match.group(2)
            match = _ADDRESS.match(part)
        if not addressed:
            continue
        rule = part.strip().lower()
        if match and match.group(1).lower() == "unavailable_after":
            noindex = noindex or _passed(match.group(2).strip(), now)
        elif rule == "none":
            noindex = nofollow = True
        noindex = noindex or rule == "noindex"
        nofollow = nofollow or rule == "nofollow"
        noarchive = noarchive or rule in ("noarchive", "nocache")
    return RobotsTag(noindex, nofollow, noarchive)


def _passed(date: str, now: float) -> bool:
    """Whether a date in RFC 822, RFC 850 or ISO 8601 form lies in the past. One we cannot read says nothing."""
    try:
        at = datetime.fromisoformat(date)
    except ValueError:
        try:
            at = parsedate_to_datetime(date)
        except (ValueError, TypeError):
            return False
    try:
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() <= now
    except (OverflowError, ValueError):
        return False
