"""Requests to forget pages: which pages are meant, how far the work is, and what was done.

A request is a list of patterns, written as those of the scope. They are rules of the scope from its first moment on, so
that nothing of it is visited again; `quadloom scope remove` allows it again. The stored request keeps the patterns
until the work is done. What is left then is a report without addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import re2

from quadloom.errors import UrlError, UsageError
from quadloom.model.outcome import PageRow
from quadloom.model.page import Failure, Page
from quadloom.model.url import Url, canonical
from quadloom.planning.scope import KEPT_DEPTH, Scope, ScopeRecord
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog


class ForgetReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be. `files`: of the archive, written again; `bytes`: of the records."""

    asked_at: float = 0.0
    done_at: float = 0.0
    pages: int = 0
    urls: int = 0
    hosts: int = 0
    notices: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0


class Forgetting(msgspec.Struct, frozen=True, kw_only=True):
    """A request. `rules` is empty when everything is removed but what is left in the files of the database. `replaced`:
    files of the archive whose records have new places, to be removed first."""

    rules: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    report: ForgetReport = ForgetReport()

    @property
    def is_done(self) -> bool:
        return self.report.done_at > 0.0


REQUESTS = NamedValues("forget:", Forgetting)


def pending(catalog: Catalog) -> list[str]:
    """Names of the requests that are not finished, the oldest first."""
    return [name for name, request in REQUESTS.items(catalog) if not request.is_done]


def rules_of(names: Sequence[str], where: Sequence[str]) -> tuple[str, ...]:
    """Patterns of the scope for URLs and sites (`example.org`), and those given as such. Raises `UsageError` for what
    is neither, and `SettingsError` for a pattern that cannot be read."""
    rules = (*(_site_rule(name) if "/" not in name else _url_rule(name) for name in names), *where)
    Scope(ScopeRecord(exclude=rules))
    return rules


def _url_rule(name: str) -> str:
    key = canonical(_parsed(name).href)
    return f"re:^https?://{re2.escape(key.partition('://')[2])}$"


def _site_rule(name: str) -> str:
    host = _parsed(f"https://{name}/").host
    return rf"re:^https?://([^/?#]*[.@])?{re2.escape(host)}(:[0-9]+)?([/?#]|$)"


def _parsed(text: str) -> Url:
    try:
        return Url.parse(text)
    except UrlError:
        raise UsageError(
            f"{text!r} is neither a URL nor a site",
            hint="write https://example.org/page for a page, example.org for a site with its subdomains,"
            " or --where 'https://example.org/people/*' for a part of one",
        ) from None


class Forgotten:
    """Which URLs, hosts, pages and records a request means."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._scope = Scope(ScopeRecord(reach="any", exclude=tuple(rules)))

    def url(self, href: str) -> bool:
        return self._scope.verdict(href, "", KEPT_DEPTH) is not None

    def host(self, name: str) -> bool:
        """Whether a host goes as a whole, with its robots.txt."""
        return self.url(f"https://{name}/robots.txt") or self.url(f"http://{name}/robots.txt")

    def page(self, row: PageRow) -> bool:
        """Its address, or the one that it was redirected to, whose content it has."""
        return self.url(row.href) or self.url(row.key) or bool(row.final_url and self.url(row.final_url))

    def record(self, record: Page | Failure) -> bool:
        urls = {record.url, canonical(record.url)}
        if isinstance(record, Page):
            urls |= {record.final_url, canonical(record.final_url)}
        return any(map(self.url, urls))
