"""robots.txt by RFC 9309: parsed once, stored as a short list of rules, checked for every URL.

Only the rules of the crawler's own group are stored, so a row in the catalog is small. The parser is as lenient as
those that site owners test against (missing colons, usual misspellings, a byte order mark, any line ending), because a
rule that is not understood is a wish that is not honoured. Lines that belong to no group (Sitemap, Crawl-delay,
unknown ones) never end a group, as 2.2.4 demands.

Patterns are matched without regular expressions: a pattern is split at its stars, and the pieces are searched from
left to right, each at its first possible place. That is exact for `*` and linear in the URL for each piece; a
translated regular expression with many stars can take for ever.

Not Protego: it is right in all but the byte order mark, but it translates to `re` and stores the whole file.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from quadloom.model import wire

MAX_LINE = 2083 * 8  # bytes of one line that are read; longer ones are cut, as in Google's parser
MAX_SITEMAPS = 1000

Status = Literal["found", "missing", "unavailable"]

_AGENT = ("user-agent", "useragent", "user agent")
_ALLOW = ("allow",)
_DISALLOW = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
_SITEMAP = ("sitemap", "site-map")
_DELAY = ("crawl-delay", "crawldelay", "crawl delay")
_KNOWN = {
    word: words[0] for words in (_AGENT, _ALLOW, _DISALLOW, _SITEMAP, _DELAY) for word in words
}  # spelling in use on the web -> directive

_TOKEN = re.compile(r"[A-Za-z_-]+")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})|([\x80-\xff])")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class RobotsRule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`pattern` in normal form (`normalise`), with `*` and a final `$` as the author wrote them."""

    allow: bool
    pattern: str


class Robots(msgspec.Struct, frozen=True, array_like=True):
    """What a robots.txt says to this crawler."""

    rules: tuple[RobotsRule, ...] = ()
    crawl_delay: float = 0.0
    sitemaps: tuple[str, ...] = ()


class RobotsRow(msgspec.Struct, frozen=True, array_like=True):
    """A robots.txt as the catalog stores it, in `HostRow.robots`. `origin` = scheme and authority it applies to.

    `missing` (4xx): all is allowed. `unavailable` (429, 5xx, no answer): nothing is, until `expires`, which then is
    soon. `reason` says why in words.
    """

    origin: str
    status: Status
    fetched_at: float
    expires: float
    robots: Robots = Robots()
    reason: str = ""

    def encode(self) -> bytes:
        return wire.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> RobotsRow | None:
        """None for bytes that an older version wrote: the file is then requested again."""
        try:
            return wire.decode(data, cls)
        except msgspec.MsgspecError:
            return None


def parse(data: bytes, product: str, *, max_bytes: int = 500 * 1024) -> Robots:
    """Parse a robots.txt for the crawler with the product token `product`. Never fails: invalid lines are skipped."""
    own: list[RobotsRule] = []
    others: list[RobotsRule] = []  # of the groups for `*`
    own_delay = others_delay = 0.0
    own_named = False
    sitemaps: dict[str, None] = {}
    ours = everyones = False  # whom the current group addresses
    in_head = False  # between the user-agent lines of a group and its first rule
    for key, value in _lines(data, max_bytes):
        if key == "user-agent":
            if not in_head:
                ours = everyones = False
                in_head = True
            agent = _token(value)
            if agent == "*":
                everyones = True
            elif agent == product.lower():
                ours = own_named = True
        elif key == "sitemap":
            if value and len(sitemaps) < MAX_SITEMAPS:
                sitemaps.setdefault(value)
        elif key == "crawl-delay":
            seconds = _seconds(value)
            own_delay = max(own_delay, seconds) if ours else own_delay
            others_delay = max(others_delay, seconds) if everyones else others_delay
        else:
            in_head = False
            if not value or not (ours or everyones):
                continue
            rule = RobotsRule(key == "allow", _pattern(value))
            if ours:
                own.append(rule)
            if everyones:
                others.append(rule)
    rules, delay = (own, own_delay) if own_named else (others, others_delay)
    return Robots(tuple(dict.fromkeys(rules)), delay, tuple(sitemaps))


def verdict(rules: tuple[RobotsRule, ...], path: str) -> RobotsRule | None:
    """The rule that forbids a path (with query, in normal form), or None if it may be fetched. The longest pattern that
    matches decides; Allow wins."""
    if path == "/robots.txt" or not rules:
        return None
    forms = _spellings(path)
    best: RobotsRule | None = None
    for rule in rules:
        if best is not None:
            shorter = len(rule.pattern) - len(best.pattern)
            if shorter < 0 or (shorter == 0 and (best.allow or not rule.allow)):
                continue
        if any(matches(rule.pattern, form) for form in forms):
            best = rule
    return best if best is not None and not best.allow else None


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches from the start of the path; `*` is any run of characters, a final `$` the end."""
    anchored = pattern.endswith("$")
    if anchored:
        pattern = pattern[:-1]
    if "*" not in pattern:
        return path == pattern if anchored else path.startswith(pattern)
    first, *middle, last = pattern.split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    if anchored:
        return len(path) - len(last) >= at and path.endswith(last)
    return path.find(last, at) >= 0


def normalise(text: str) -> str:
    """Percent-encoding as RFC 9309 2.2.2 compares it: unreserved characters plain, everything else encoded in capitals.

    `text` may hold characters 0x80-0xFF for raw bytes (a line of the file, decoded as Latin-1) or any others, which
    are taken as UTF-8.
    """
    if text.isascii() and "%" not in text:
        return text
    try:
        raw = text.encode("latin-1")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "replace")
    return _ESCAPE.sub(_normal_escape, raw).decode("ascii")


@lru_cache(maxsize=4096)
def path_of(href: str) -> str:
    """Path and query of an absolute URL, in normal form."""
    start = href.find("/", href.find("//") + 2)
    if start < 0:
        return "/"
    path = href[start:].partition("#")[0]
    path = normalise(path if path.isascii() else path.encode().decode("latin-1"))
    return path.replace("*", "%2A").replace("$", "%24")  # in a URL these mean themselves (2.2.3)


def _pattern(value: str) -> str:
    """Normal form of a rule's path. A `$` that is not the last character means itself."""
    value = normalise(value)
    return value[:-1].replace("$", "%24") + value[-1:]


def _spellings(path: str) -> tuple[str, ...]:
    """The path; if its query holds `:` or `/`, plain or encoded, the other spelling too.

    The table in RFC 9309 2.2.2 encodes them in a query before matching, Google's parser does not; owners write both.
    """
    head, mark, query = path.partition("?")
    if not mark:
        return (path,)
    plain = query.replace("%3A", ":").replace("%2F", "/")
    encoded = query.replace(":", "%3A").replace("/", "%2F")
    if plain == encoded:
        return (path,)
    return tuple(dict.fromkeys((path, f"{head}?{plain}", f"{head}?{encoded}")))


def _lines(data: bytes, max_bytes: int) -> list[tuple[str, str]]:
    """(directive, value) of each line that has a known directive, in order."""
    if len(data) > max_bytes:
        data = data[:max_bytes]
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]  # half a rule is another rule
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    found: list[tuple[str, str]] = []
    for line in data.replace(b"\r", b"\n").split(b"\n"):
        text = line[:MAX_LINE].partition(b"#")[0].replace(b"\0", b"").strip()
        if not text:
            continue
        key, colon, value = text.decode("latin-1").partition(":")
        if not colon:
            key, _, value = key.partition(" ") if " " in key else key.partition("\t")
            if len(value.split()) != 1:
                continue
        directive = _KNOWN.get(key.strip().lower())
        if directive is not None:
            found.append((directive, value.strip()))
    return found


def _token(value: str) -> str:
    """Product token of a user-agent line, in lower case: `FooBot/1.2 (x)` names foobot; `*` and `* anything` all."""
    if value.startswith("*") and (len(value) == 1 or value[1].isspace()):
        return "*"
    match = _TOKEN.match(value)
    return match.group().lower() if match else ""


def _seconds(value: str) -> float:
    try:
        seconds = float(value.split()[0]) if value else 0.0
    except ValueError:
        return 0.0
    return seconds if 0.0 <= seconds < 1e9 else 0.0


def _normal_escape(match: re.Match[bytes]) -> bytes:
    if match.group(2):
        return b"%%%02X" % match.group(2)[0]
    value = int(match.group(1), 16)
    return bytes((value,)) if value in _UNRESERVED else b"%%%02X" % value
