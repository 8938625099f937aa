"""Links whose words say nothing, or whose page is off the topic: which of them to follow nevertheless.

Relevant pages are often reached only through others. A link belongs to groups, each within the one before: links with
as many pages off the topic in a row before them; with the same tags around them; of the same site and the same shape of
address; of the same directory; of the same page. A group is worth what following its links has brought so far: relevant
pages, and a share of those found further on. A group of which little is known is worth as much as the one around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from quadloom.crawling.topical.anchors import Anchor
from quadloom.model.url import host_of

_PRIOR, _WORTH = 0.2, 6.0  # what the first links are worth, and how many links that guess counts
_DECAY = 0.85  # of the worth of a link, for each page off the topic on the way to it
_CREDIT = 0.4  # of a relevant page for the link before, and so on
_ANCESTORS = 4
_SHRINK = 2.5  # links that the mean of the next wider group counts
_MOST = 20_000  # links kept
_MOST_GAPS = 4  # beyond, all gaps are one group
_LONGEST = 12  # pages off the topic in a row, after which a path ends
_DIGITS = re.compile(r"\d+")


class TunnelLink(NamedTuple):
    """`gap`: pages off the topic in a row before it. `before`: the link that led to its page."""

    url: str
    key: str
    host: str
    groups: tuple[str, ...]
    gap: int
    before: TunnelLink | None


class Tunnel:
    """The links that wait, by group. `offer` and `learn` while pages are read, `best` and `take` to follow a link."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, ...], list[TunnelLink]] = {}
        self._counts: dict[str, tuple[float, int]] = {}  # of a group: what it has brought, links followed
        self._kept = 0

    def __len__(self) -> int:
        return self._kept

    def offer(self, page: str, anchors: Iterable[Anchor], before: TunnelLink | None, relevant: bool) -> None:
        """Keep the links of a page that was read by following `before`."""
        gap = 0 if relevant else (before.gap if before else 0) + 1
        if gap > _LONGEST:
            return
        for anchor in anchors:
            if self._kept < _MOST:
                host = host_of(anchor.url)
                path, shape = _directory(anchor.url)
                tags = f"{min(gap, _MOST_GAPS)} {anchor.signature}"
                groups = (
                    tags,
                    f"{tags} {host}{shape}",
                    f"{anchor.signature} {host}{path}",
                    f"{anchor.signature} {page}",
                )
                link = TunnelLink(anchor.url, anchor.key, host, groups, gap, before)
                self._waiting.setdefault(groups, []).append(link)
                self._kept += 1

    def best(self, barred: set[str]) -> tuple[float, TunnelLink] | None:
        """The first link of the best group, with its expected worth."""
        chosen: tuple[float, TunnelLink] | None = None
        for groups, links in self._waiting.items():
            value = self._mean(groups) * _DECAY ** links[0].gap
            if links[0].host not in barred and (chosen is None or value > chosen[0]):
                chosen = value, links[0]
        return chosen

    def take(self, link: TunnelLink) -> None:
        """Remove a link: it is followed, or its page is known."""
        self._waiting[link.groups].remove(link)
        self._kept -= 1
        if not self._waiting[link.groups]:
            del self._waiting[link.groups]

    def learn(self, link: TunnelLink, worth: float) -> None:
        """Count what following a link has brought, also for the links before it."""
        followed = 1
        at: TunnelLink | None = link
        for _ in range(_ANCESTORS):
            if at is None:
                return
            for group in ("", *at.groups):
                brought, links = self._counts.get(group, (0.0, 0))
                self._counts[group] = brought + worth, links + followed
            followed = 0
            worth *= _CREDIT
            at = at.before

    def _mean(self, groups: tuple[str, ...]) -> float:
        mean, weight = _PRIOR, _WORTH
        for group in ("", *groups):
            brought, links = self._counts.get(group, (0.0, 0))
            mean = (brought + weight * mean) / (links + weight)
            weight = _SHRINK
        return min(mean, 1.0)


def _directory(url: str) -> tuple[str, str]:
    """The address without its last part, as it is and with numbers as #."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/").rpartition("/")[0]
    return path, f"{_DIGITS.sub('#', path)}/{'?' if parts.query else ''}{parts.query.partition('=')[0]}"
