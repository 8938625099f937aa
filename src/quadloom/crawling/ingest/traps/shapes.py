"""Spider traps: URL spaces without end, recognized by the form of a URL and by how a host's URLs grow.

Two defences, both pure. `trap` checks a single URL for the shapes that endless spaces produce (stacked relative links,
session ids, calendars far in the future). `HostShapes` and `SubdomainBudget` count: one URL with a facet is fine, ten
thousand combinations of the same facets are not. Every refusal is a sentence, the same for all URLs of one trap, so
that `quadloom status` can count them. Nothing is dropped silently, and the host's budget (`politeness.cost_of`) is the
last limit for all other traps.
"""

from __future__ import annotations

import re
from collections import Counter

from quadloom.model.url import MAX_LENGTH, site_of

MAX_PATH_DEPTH = 16
MAX_REPEATS = 3  # of one path segment or query parameter
MAX_QUERY_KEYS = 16
CALENDAR_LAST = 2039  # the year after 32-bit clocks end: no real event is announced for later
FACET_URLS = 2000  # distinct combinations of values for one set of query keys, per path
CALENDAR_URLS = 1000  # dated URLs below one path
MAX_SHAPES = 4096  # per host
SUBDOMAINS = 200  # hosts of one registered domain within one crawl

_SESSION_PATH = re.compile(r"(?i);(?:jsessionid|phpsessid|sid)=|/\(s\([0-9a-z]{16,}\)\)/")
_SESSION_VALUE = re.compile(
    r"(?i)[?&](?:phpsessid|jsessionid|sessionid|session_id|sid|aspsessionid\w*)=[0-9a-z._-]{12,}"
)
# Begins with a digit, so that the module `re` passes over all else at once.
_YEAR = re.compile(r"([1-9](?<![^/=_-][1-9])\d{3})[/_-]?(?:0[1-9]|1[0-2])(?=$|[/_&-]|\d{2}(?:$|[/_&T-]))")
_PLAIN_YEAR = re.compile(r"(?i)[?&](?:year|y|jahr|annee)=(\d{1,6})(?=$|&)")
_CALENDAR_WORD = re.compile(r"(?i)cal|event|date|month|day|year|week|agenda|schedule|termin|kalend")
_DIGITS = re.compile(r"\d+")
_SLASHES = 2 + MAX_REPEATS  # of a URL with a short path


def is_plain(href: str) -> bool:
    """Whether a URL has neither a query nor a date, and a short path, as most have. `trap` and `HostShapes` say nothing
    about those, which this finds out in a fifth of the time."""
    return (
        href.count("/") <= _SLASHES
        and "?" not in href
        and ";" not in href
        and "(" not in href
        and len(href) <= MAX_LENGTH
        and _YEAR.search(href) is None
    )


def trap(href: str) -> str | None:
    """Why a URL looks like part of an endless space, or None. Takes linear time."""
    if len(href) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH} characters"
    path, _, query = _path_and_query(href)
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > MAX_PATH_DEPTH:
        return f"more than {MAX_PATH_DEPTH} path segments"
    reason = _repetition(segments)
    if reason is not None:
        return reason
    if _SESSION_PATH.search(path) or _SESSION_VALUE.search(f"?{query}"):
        return "carries a session id, so every visit would be a new URL"
    if query:
        reason = _query_reason(query)
        if reason is not None:
            return reason
    return _calendar(path, query)


def _repetition(segments: list[str]) -> str | None:
    """The same segment many times, or a run of segments three times in a row, as stacked relative links produce."""
    if len(segments) <= MAX_REPEATS or len(segments) - len(set(segments)) < MAX_REPEATS:
        return None  # both kinds of repetition need that many segments that were there before
    segment, times = Counter(segments).most_common(1)[0]
    if times > MAX_REPEATS:
        return f"path segment {segment[:40]!r} occurs more than {MAX_REPEATS} times"
    for size in range(2, len(segments) // 3 + 1):  # a/b/a/b/a/b: the same run three times at the end
        tail = segments[-size:]
        if segments[-2 * size : -size] == tail and segments[-3 * size : -2 * size] == tail:
            return f"path segments {'/'.join(tail)[:60]!r} repeat"
    return None


def _query_reason(query: str) -> str | None:
    if "amp;amp;" in query:
        return "query grows by &amp; at every step"
    if query.count("&") + query.count(";") < MAX_REPEATS:
        return None
    pairs = [pair for pair in re.split("[&;]", query) if pair]
    if len(pairs) > MAX_QUERY_KEYS:
        return f"more than {MAX_QUERY_KEYS} query parameters"
    names = Counter(pair.partition("=")[0] for pair in pairs)
    for name, times in names.items():
        if times > MAX_REPEATS and not name.endswith(("[]", "%5B%5D")):
            return f"query parameter {name[:40]!r} occurs more than {MAX_REPEATS} times"
    return None


def _calendar(path: str, query: str) -> str | None:
    """A calendar page after any plausible date, which only endless `next month` links lead to.

    Only the future counts: newspaper archives have real pages of 1801. Only with a word for a calendar in the URL:
    /rfc/9309-06 is not a date.
    """
    text = f"{path}?{query}" if query else path
    match = _YEAR.search(text) or _PLAIN_YEAR.search(text)
    if match is None or int(match.group(1)) <= CALENDAR_LAST or not _CALENDAR_WORD.search(text):
        return None
    return f"a calendar page after the year {CALENDAR_LAST}"


class HostShapes:
    """Counts the URLs of one host by shape: same path pattern, same query keys. Bounded memory."""

    def __init__(self, *, facet_urls: int = FACET_URLS, calendar_urls: int = CALENDAR_URLS) -> None:
        self._facet_urls = facet_urls
        self._calendar_urls = calendar_urls
        self._counts: Counter[str] = Counter()

    def admit(self, href: str) -> str | None:
        """Count a new URL; returns the reason if its shape has reached its limit, else None. Call once per new URL."""
        path, _, query = _path_and_query(href)
        if query:
            keys = sorted({pair.partition("=")[0] for pair in re.split("[&;]", query) if pair})
            if len(keys) >= 2:
                return self._count(f"{path}?{'&'.join(keys)}", self._facet_urls, "combinations of the facets")
        if _YEAR.search(f"{path}?{query}"):
            return self._count(_DIGITS.sub("0", f"{path}?{query}"), self._calendar_urls, "dated pages like")
        return None

    def _count(self, shape: str, limit: int, description: str) -> str | None:
        counts = self._counts
        if shape not in counts and len(counts) >= MAX_SHAPES:
            for rare, _ in counts.most_common()[: -(MAX_SHAPES // 2) - 1 : -1]:
                del counts[rare]
        counts[shape] += 1
        return f"more than {limit} {description} {shape[:120]}" if counts[shape] > limit else None


class SubdomainBudget:
    """Limits the hosts of each registered domain: wildcard DNS makes any number of them."""

    def __init__(self, *, subdomains: int = SUBDOMAINS) -> None:
        self._limit = subdomains
        self._hosts: Counter[str] = Counter()  # by domain
        self._admitted: set[str] = set()

    def admit(self, host: str) -> str | None:
        """The reason if `host` is one too many for its domain, else None. A host that was admitted stays admitted."""
        if host in self._admitted:  # as nearly always
            return None
        site = site_of(host)
        if self._hosts[site] >= self._limit:
            return f"more than {self._limit} hosts below {site}"
        self._hosts[site] += 1
        self._admitted.add(host)
        return None


def _path_and_query(href: str) -> tuple[str, str, str]:
    start = href.find("/", href.find("//") + 2)
    return href[start:].partition("?") if start >= 0 else ("/", "", "")
