"""A URL with two faces: `href`, which is requested, and `key`, which says whether two URLs are the same page.

Parsing and joining follow the WHATWG standard (Ada). The key is stricter than the href, so that spellings which
servers treat alike are one page, while the request still goes to the spelling that the author wrote
(browsertrix-crawler#982 shows what happens when a crawler requests the canonical form instead).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import lru_cache

import ada_url
import msgspec
from publicsuffixlist import PSLFILE
from xxhash import xxh3_64_intdigest

from quadloom.errors import UrlError

MAX_LENGTH = 2083  # the longest URL that sitemaps, robots parsers and browsers all agree to carry

_SESSION = re.compile(r"(?i)^(phpsessid|jsessionid|sid|sessionid|session_id|aspsessionid\w*|cfid|cftoken)$")
_TRACKING = re.compile(r"(?i)^(utm_\w+|gclid|fbclid|msclkid|mc_eid|mc_cid|yclid|_ga|igshid)$")
_PATH_SESSION = re.compile(r"(?i);(jsessionid|sid|phpsessid)=[^/?;]*")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_UNSAFE = re.compile(r'[{}|^`\\\[\]"<>]|%(?![0-9A-Fa-f]{2})')
_NO_HOST = re.compile(r'https?://[^/?]*[{}|^`\\"<>]')  # the URL standard allows these, no name server knows them
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Url(msgspec.Struct, frozen=True, array_like=True):
    """`href`: absolute http(s) URL without fragment, as requested. `key`: its canonical form, the page's identity."""

    href: str
    key: str

    @classmethod
    def parse(cls, text: str, base: str | None = None) -> Url:
        """Parse `text` (relative to `base` if given). Raises `UrlError` for anything that is not http or https."""
        href = resolve(text, base)
        if href is None:
            raise UrlError(
                f"not a web address: {text[:200]!r}",
                hint="give an absolute http:// or https:// URL, such as https://example.org/",
            )
        return cls(href, canonical(href))

    @property
    def host(self) -> str:
        """Host name, with port if it is not the scheme's default: the unit of politeness."""
        return host_of(self.href)

    @property
    def site(self) -> str:
        """Registered domain: the unit of scope, fairness and partition."""
        return site_of(self.host)

    @property
    def fingerprint(self) -> int:
        return fingerprint(self.key)

    def __str__(self) -> str:
        return self.href


def absolute(text: str, base: str | None = None) -> str | None:
    """The href of any scheme that the WHATWG URL standard gives for `text`, or None if it fails."""
    try:
        href: str = ada_url.join_url(base, text) if base is not None else ada_url.normalize_url(text)
    except ValueError:
        return None
    return href


def resolve(text: str, base: str | None = None) -> str | None:
    """Absolute http(s) URL without fragment, or None if `text` leads to nothing that could be visited."""
    href = absolute(text, base)
    if href is None or not href.startswith(("http://", "https://")):
        return None
    cut = href.find("#")
    if cut >= 0:
        href = href[:cut]
    if _UNSAFE.search(href):
        href = encoded(href)
        if _NO_HOST.match(href):
            return None
    return href if len(href) <= MAX_LENGTH else None


def encoded(href: str) -> str:
    """The same URL as an IRI that RDF can carry: what RFC 3987 forbids in path, query and fragment is percent-encoded.

    The URL standard leaves `{`, `|`, `[` and stray percent signs alone, but a page's URL is its graph's name, and a
    strict RDF parser refuses such names. Servers decode both spellings to the same.
    """
    slash = href.find("/", href.find("//") + 2) if "//" in href else href.find(":") + 1
    if slash < 0:
        slash = len(href)
    head, tail = _STRAY_PERCENT.sub("%25", href[:slash]), href[slash:]
    path, mark, fragment = tail.partition("#")
    tail = path + mark + fragment.replace("#", "%23")
    return head + _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", tail)


def canonical(href: str) -> str:
    """The identity of a page: tracking and session parameters gone, percent-encoding normal, empty query gone."""
    if "%" not in href and "?" not in href and ";" not in href and "@" not in href:
        return href  # nine of ten links end here
    head, mark, query = href.partition("?")
    if "@" in head:
        head = _without_userinfo(head)
    if ";" in head:
        # In the path only: `https://bank.example;sid=.evil.example/` must not pass for a page of bank.example.
        path = head.find("/", head.find("//") + 2)
        head = head[:path] + _PATH_SESSION.sub("", head[path:]) if path >= 0 else head
    if "%" in head:
        head = _PERCENT.sub(_normal_percent, head)
    if not mark or not query:
        return head
    if "%" in query:
        query = _PERCENT.sub(_normal_percent, query)
    kept = [pair for pair in query.split("&") if pair and not _is_noise(pair)]
    return f"{head}?{'&'.join(kept)}" if kept else head


def fingerprint(key: str) -> int:
    """64 bits that stand for a canonical URL; signed, because that is what SQL integers hold."""
    value = xxh3_64_intdigest(key.encode())
    return value - (1 << 64) if value >= 1 << 63 else value


@lru_cache(maxsize=65536)
def _host_of_authority(authority: str) -> str:
    return authority.rpartition("@")[2]


def host_of(href: str) -> str:
    """`example.org` or `example.org:8080`; the href must be absolute."""
    start = href.find("//") + 2
    end = href.find("/", start)
    authority = href[start:end] if end >= 0 else href[start:]
    if "?" in authority or "#" in authority:  # only if a caller's href was not normalised
        authority = authority.partition("?")[0].partition("#")[0]
    return _host_of_authority(authority)


@lru_cache(maxsize=65536)
def site_of(host: str) -> str:
    """Registered domain of a host name; an IP address or a single label stands for itself (without its port)."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if host.count(":") == 0:
        name = host
    if name.startswith("[") or name.replace(".", "").isdigit():
        return host  # addresses: each port of a loopback test web is a site of its own
    if "." not in name:
        return host
    return registered_domain(name) or name


def belongs_to(host: str, sites: Collection[str]) -> bool:
    """Whether a host is one of these, with or without its port, or of one of these registered domains; none = all."""
    return not sites or host in sites or site_of(host) in sites or host.rpartition(":")[0] in sites


def _is_noise(pair: str) -> bool:
    name = pair.partition("=")[0]
    return bool(_TRACKING.match(name) or _SESSION.match(name))


def _normal_percent(match: re.Match[str]) -> str:
    value = int(match.group(1), 16)
    return chr(value) if value in _UNRESERVED else "%" + match.group(1).upper()


def _without_userinfo(head: str) -> str:
    scheme, _, rest = head.partition("//")
    authority, slash, path = rest.partition("/")
    return f"{scheme}//{authority.rpartition('@')[2]}{slash}{path}"


def host_matches(host: str, glob: str) -> bool:
    """Whether a glob over host names, such as that of a `[[site]]`, matches `host`, with its port or without."""
    glob = glob.lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return fnmatchcase(name, glob) or fnmatchcase(host, glob)


def _read() -> frozenset[str]:
    """All rules as they are written, those beyond ASCII in their own script. Comments stay among them: they begin with
    a slash, as no host name does."""
    with open(PSLFILE, "rb") as file:
        return frozenset(file.read().decode().split("\n"))


_RULES = _read()
_MOST_LABELS = 8  # of a rule, with room: a hostile name can have thousands. A test compares it with the list


def registered_domain(name: str) -> str | None:
    """The public suffix of a host name and one label more, in lower case; None if there is no such label.

    The list comes with the package `publicsuffixlist`, whose own reader sends ten thousand rules through IDNA one by
    one: 60 to 90 ms of CPU. Here the file is split as a whole, and not the rules are encoded but the few names decoded
    that have such labels; a test compares the answers with those of the package.

    An unknown last label is a suffix. A rule `*.kobe.jp` makes `kobe.jp` a suffix too, as the list's own tests have it.
    """
    labels = name.removesuffix(".").lower().split(".")
    if "" in labels:
        return None
    public = _public_labels([_in_its_script(label) for label in labels] if "xn--" in name.lower() else labels)
    return ".".join(labels[-public - 1 :]) if public < len(labels) else None


def _in_its_script(label: str) -> str:
    """The list is in lower case and in normal form C, so that a label's bare Punycode is its IDNA form."""
    if not label.startswith("xn--"):
        return label
    try:
        return label.removeprefix("xn--").encode("ascii").decode("punycode")
    except UnicodeError:
        return label  # no name that anybody could register


def _public_labels(labels: list[str]) -> int:
    """How many labels the public suffix has; the longest rule decides."""
    for length in range(min(len(labels), _MOST_LABELS), 0, -1):
        tail = ".".join(labels[-length:])
        if f"!{tail}" in _RULES:
            return length - 1
        if f"*.{tail}" in _RULES:
            return min(length + 1, len(labels))
        if tail in _RULES:
            return length
    return 1
