"""Which URLs may be visited: how far from the seeds, which patterns, how deep.

The rules are one frozen record that is stored in the catalog as bytes, so a scope survives a restart and can change
while a crawl runs (`Frontier.set_scope` applies it to all queued URLs). Patterns run on RE2, in time linear in the URL
for any pattern, since one bad expression must not stop a crawl of millions.

A pattern is a glob, in which `*` matches any characters and everything else itself (`?` is part of many URLs):

    https://example.org/docs/*     the whole URL
    example.org/docs/*             the same for http and https
    /private/*                     path and query, on any host
    *.pdf                          any URL with this ending

or, after `re:`, an RE2 expression found anywhere in the URL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec
import re2

from quadloom.errors import SettingsError
from quadloom.model.url import Url, canonical, site_of
from quadloom.settings import CrawlSettings

Reach = Literal["page", "host", "site", "any"]
KEPT_DEPTH = 30_000
"""Depth of a page that belongs to the warehouse whatever the seeds are, such as one that a topical crawl chose. It is
refreshed; links on it are too deep to be followed, unless it is also found from a seed, with its depth from there."""
_HOSTS_REMEMBERED = 65_536
_REFUSALS = {
    "page": "is not a seed, and the scope is `page`",
    "host": "is not on a seed's host, and the scope is `host`",
    "site": "is not on a seed's site, and the scope is `site`",
}


class ScopeRecord(msgspec.Struct, frozen=True):
    """The rules as stored in the catalog. `hosts`: globs of further hosts that count like the host of a seed."""

    reach: Reach = "site"
    seeds: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int = 32
    hosts: tuple[str, ...] = ()


class _Pattern(Protocol):
    def search(self, text: str) -> object: ...


class Scope:
    """Implements `quadloom.stores.protocols.ScopeRules`."""

    def __init__(self, record: ScopeRecord) -> None:
        self.record = record
        self._include = [_compile(text) for text in record.include]
        self._exclude = [(text, _compile(text)) for text in record.exclude]
        self._hosts = [_compile_host(text) for text in record.hosts]
        seeds = [Url.parse(text) for text in record.seeds]
        self._keys = {url.key for url in seeds}
        self._names = {url.host for url in seeds} if record.reach in ("page", "host") else {url.site for url in seeds}
        self._open_hosts: dict[str, bool] = {}  # whether all URLs of a host are in reach

    @classmethod
    def from_settings(cls, crawl: CrawlSettings, seeds: Iterable[str], hosts: Iterable[str] = ()) -> Scope:
        return cls(
            ScopeRecord(
                reach=crawl.scope,
                seeds=tuple(dict.fromkeys(seeds)),
                include=tuple(crawl.include),
                exclude=tuple(crawl.exclude),
                max_depth=crawl.max_depth,
                hosts=tuple(hosts),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Scope:
        """The inverse of `encode`. Raises `SettingsError` if `data` is not a scope."""
        try:
            return cls(msgspec.json.decode(data, type=ScopeRecord))
        except msgspec.MsgspecError as error:
            raise SettingsError(
                f"the stored scope cannot be read: {error}", hint="set it again with --scope"
            ) from error

    def encode(self) -> bytes:
        return msgspec.json.encode(self.record)

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        """None = the URL may be visited; otherwise the reason why not."""
        record = self.record
        if depth != KEPT_DEPTH:
            if depth > record.max_depth:
                return f"depth {depth} is over max_depth {record.max_depth}"
            # Most URLs are on a host all of whose URLs are in reach.
            if not (self._open_hosts.get(host) or self._reaches(href, host)):
                return _REFUSALS[record.reach]
        for text, pattern in self._exclude:
            if pattern.search(href):
                return f"is excluded by {text}"
        if self._include and not any(pattern.search(href) for pattern in self._include):
            return "matches none of the included patterns"
        return None

    def _reaches(self, href: str, host: str) -> bool:
        is_open = self._open_hosts.get(host)
        if is_open is None:
            if len(self._open_hosts) >= _HOSTS_REMEMBERED:
                self._open_hosts.clear()
            is_open = self._open_hosts[host] = self._is_open(host)
        return is_open or (self.record.reach == "page" and host in self._names and canonical(href) in self._keys)

    def _is_open(self, host: str) -> bool:
        reach = self.record.reach
        if reach == "any" or any(pattern.search(host) for pattern in self._hosts):
            return True
        return reach != "page" and (site_of(host) if reach == "site" else host) in self._names


def _compile(text: str) -> _Pattern:
    if text.startswith("re:"):
        return _re2(text.removeprefix("re:"), text)
    glob = ".*".join(re2.escape(part) for part in text.split("*"))
    if text.startswith("/"):
        return _re2(rf"^https?://[^/?#]*{glob}$", text)
    if "://" in text or text.startswith("*"):
        return _re2(rf"^{glob}$", text)
    return _re2(rf"^https?://{glob}$", text)


def _compile_host(text: str) -> _Pattern:
    glob = ".*".join(re2.escape(part) for part in text.lower().split("*"))
    return _re2(rf"^{glob}$", text)


def _re2(expression: str, text: str) -> _Pattern:
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        compiled: _Pattern = re2.compile(expression, options)
    except re2.error as error:
        raise SettingsError(
            f"not a pattern: {text!r}: {_detail(error)}",
            hint="write a glob such as https://example.org/docs/* or an RE2 expression after `re:`",
        ) from error
    return compiled


def _detail(error: Exception) -> str:
    detail = error.args[0] if error.args else ""
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
