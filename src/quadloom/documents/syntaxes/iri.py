"""References to absolute IRIs, by two standards, and whether an IRI is well-formed (RFC 3987).

RDFa and JSON-LD resolve by RFC 3986, section 5 (`BaseIri`, `resolve`): RDF compares IRIs character by character, so
`http://example.org` gains no slash, nothing is percent-encoded, `http:g` keeps its scheme, and a base such as
`tag:example` works. What the crawler visits follows the WHATWG rules of browsers, which rewrite what they parse
(`ReferenceResolver` for the links of one page; `quadloom.model.url.resolve` and `terms.join` for single ones).
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import lru_cache
from ipaddress import IPv6Address

from quadloom.documents.memo import Memo
from quadloom.documents.syntaxes.terms import iri as term_of
from quadloom.model.url import MAX_LENGTH
from quadloom.model.url import resolve as resolve_url

try:
    from quadloom.documents.native.records import join_all as _join_all
except ImportError:  # it was not built: there is no compiler
    _join_all = None  # type: ignore[assignment]

_PARTS = re.compile(r"([^:/?#]+:)?(//[^/?#]*)?([^?#]*)")  # RFC 3986, appendix B, up to the query; it matches any text
_FILE = re.compile(r"\.\w{2,5}(?:[?#]|\Z)")
_HAS_SCHEME = re.compile(r"[^:/?#]+:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FORBIDDEN = re.compile('[\x00-\x20<>"{}|^`\\\\\ud800-\udfff]')
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S*\Z")

# A group per percent-encoded character is slow, so `%` is one of the characters here and its two digits are checked on
# their own below.
_PLAIN = r"A-Za-z0-9\-._~!$&'()*+,;=%"
_WELL_FORMED = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*:"
    rf"(?://(?:[{_PLAIN}:]*@)?(?:\[[0-9A-Fa-f:.]+\]|\[[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+\]|"
    rf"[{_PLAIN}]*)(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
    rf"[{_PLAIN}:@/]*"
    rf"(?:\?[{_PLAIN}:@/?]*)?"
    rf"(?:\#[{_PLAIN}:@/?]*)?"
)


class _Beyond(dict[int, int]):
    """A table for `str.translate`: `%` for code points beyond ASCII within the spans, others as they are. As classes of
    the expression, the spans would take as long to compile as ten pages to read."""

    def __init__(self, *spans: tuple[int, int]) -> None:
        self._bounds = sorted(bound for first, last in spans for bound in (first, last + 1))

    def __missing__(self, code: int) -> int:  # not stored: hostile texts have all code points
        return 0x25 if bisect(self._bounds, code) % 2 else code


_SPANS = [(0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF)]
_SPANS += [(plane << 16 | (0x1000 if plane == 14 else 0), plane << 16 | 0xFFFD) for plane in range(1, 15)]
_UCSCHAR = _Beyond(*_SPANS)  # RFC 3987, as the private ones, which are for queries only
_IN_QUERY = _Beyond(*_SPANS, (0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_MEMORABLE = 512  # longer strings are not kept in memory between documents


class BaseIri:
    """The IRI that references are resolved against. Its fragment is dropped (RFC 3986, 5.1)."""

    __slots__ = ("_authority", "_directory", "_path", "_scheme", "iri")

    def __init__(self, iri: str) -> None:
        self.iri = iri.partition("#")[0]
        scheme, authority, path = _split(self.iri)
        self._scheme = scheme
        self._authority = authority
        self._path = path
        self._directory = path[: path.rfind("/") + 1] or ("/" if authority else "")

    @classmethod
    def of_attribute(cls, value: str) -> BaseIri:
        """The base that an attribute or a page's address gives, with `encoded` in place of what no IRI may contain."""
        return cls(encoded(value.strip().partition("#")[0]))

    def moved(self, value: str) -> BaseIri:
        """The base that `<base href>` or `xml:base` makes of this one; itself if RDF could not carry the result."""
        term = term_of(self.resolve_attribute(value))
        return BaseIri(term[1:-1]) if term else self

    def resolve(self, reference: str) -> str:
        """The target of a reference (RFC 3986, 5.2.2, strict)."""
        if not reference:
            return self.iri
        first = reference[0]
        if first == "#":
            return self.iri + reference
        if ":" in reference and _HAS_SCHEME.match(reference):
            return _without_dots_in(reference)
        if first == "?":
            return f"{self._scheme}{self._authority}{self._path}{reference}"
        if reference.startswith("//"):
            return _without_dots_in(self._scheme + reference)
        path, tail = _split_tail(reference)
        if first != "/":
            path = self._directory + path
        return f"{self._scheme}{self._authority}{_without_dots(path)}{tail}"

    def resolve_attribute(self, value: str) -> str:
        """As `resolve`, for an attribute as pages write them: spaces around it do not count, and characters that no IRI
        may contain are percent-encoded, because dropping the statement would lose data."""
        value = value.strip(" \t\r\n\f")
        if _FORBIDDEN.search(value):
            value = encoded(value)
        if ":" in value:
            scheme = _SCHEME.match(value)
            if scheme:  # `urn:a/../b` has no hierarchy, so it stays as written
                return _without_dots_in(value) if value.startswith("/", scheme.end()) else value
            if value[0] not in "/?#":
                value = f"./{value}"  # `15:30` is a path: no scheme begins with a digit (RFC 3986, 4.2)
        return self.resolve(value)


def resolve(base: str, reference: str) -> str:
    """The target of `reference` seen from `base` (RFC 3986, 5.2.2, strict)."""
    if reference[:1] == "#":
        return base.partition("#")[0] + reference
    if len(reference) > _MEMORABLE:
        return _resolve.__wrapped__(base, reference)
    return _resolve(base, reference)


@lru_cache(maxsize=1024)
def _resolve(base: str, reference: str) -> str:
    return _base(base).resolve(reference)


_base = lru_cache(maxsize=64)(BaseIri)  # documents of a site share theirs


def is_absolute(iri: str) -> bool:
    return _SCHEME.match(iri) is not None


def has_iri_form(value: str) -> bool:
    """Whether `value` starts with a scheme and has no white space: the test that JSON-LD's expansion uses."""
    return _ABSOLUTE.match(value) is not None


def well_formed_term(iri: str) -> str | None:
    """`<iri>` if it is well-formed. Predicates, types and identifiers recur, hence the cache."""
    return _well_formed_term(iri) if len(iri) <= _MEMORABLE else _well_formed_term.__wrapped__(iri)


@lru_cache(maxsize=4096)
def _well_formed_term(iri: str) -> str | None:
    return f"<{iri}>" if is_well_formed(iri) else None


def spaced_term(iri: str, base: str) -> str | None:
    """The term of an address in which only spaces are wrong: `%20` takes their place, as in browsers. Words without a
    file's extension that were resolved against the folder of `base` are no address: `no picture` for an image."""
    if " " not in iri:
        return None
    iri = iri.strip(" ")
    if iri.startswith(base[: base.rfind("/") + 1]) and not _FILE.search(iri):
        return None
    return well_formed_term(iri.replace(" ", "%20")) if " " not in iri.partition("://")[2].partition("/")[0] else None


def is_well_formed(value: str) -> bool:
    """Whether `value` is an absolute IRI that every N-Quads parser accepts."""
    if _WELL_FORMED.fullmatch(value if value.isascii() else _in_ascii(value)) is None:
        return False
    if "%" in value and _BAD_PERCENT.search(value):
        return False
    return "://[" not in value or _has_address(value)


def _in_ascii(iri: str) -> str:
    """The IRI with `%` in place of each character beyond ASCII that may stand where it stands, as `%` may."""
    before, hash_sign, fragment = iri.partition("#")
    path, question_mark, query = before.partition("?")
    query = query.translate(_IN_QUERY)
    return f"{path.translate(_UCSCHAR)}{question_mark}{query}{hash_sign}{fragment.translate(_UCSCHAR)}"


def encoded(iri: str) -> str:
    """The IRI with forbidden characters percent-encoded; line breaks and tabs inside it vanish, as in browsers."""
    if not _FORBIDDEN.search(iri):
        return iri
    return _FORBIDDEN.sub(_percent, iri)


def _has_address(value: str) -> bool:
    host = value[value.index("[") + 1 : value.index("]")]
    if host[:1] in "vV":
        return True
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _percent(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\t\r\n":
        return ""
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _split(iri: str) -> tuple[str, ...]:
    """Scheme with its colon, authority with its slashes, path."""
    parts = _PARTS.match(iri)
    return parts.groups("") if parts is not None else ("", "", iri)


def _split_tail(reference: str) -> tuple[str, str]:
    """Path, and query with fragment."""
    end = len(reference)
    for mark in "?#":
        found = reference.find(mark, 0, end)
        if found >= 0:
            end = found
    return reference[:end], reference[end:]


def _without_dots_in(iri: str) -> str:
    if "/." not in iri and ":." not in iri:
        return iri
    scheme, authority, path = _split(iri)
    return f"{scheme}{authority}{_without_dots(path)}{iri[len(scheme) + len(authority) + len(path) :]}"


def _without_dots(path: str) -> str:
    """RFC 3986, 5.2.4, in one pass over the segments. `..` above the root vanishes."""
    if "." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    rooted = path.startswith("/")
    for segment in segments:
        if segment == "..":
            if len(kept) > rooted:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


# Characters that are kept as they are in path and query, and escapes. But `%2e` is a dot in disguise, and a percent
# sign that begins no escape is escaped itself.
_plain = re.compile(r"(?!.*%(?:2[eE]|(?![0-9A-Fa-f]{2})))[A-Za-z0-9/_~!$&()*+,;=:@.?%-]*\Z", re.DOTALL).match
_other_scheme = re.compile(r"(?!https?:)[A-Za-z][A-Za-z0-9+.-]*:", re.IGNORECASE).match
_SHORT = MAX_LENGTH // 2
_LONGEST_ORIGIN = 200

# How a reference joins a base, as far as the reference alone determines it: how many folders up, or one of these; and
# what is put behind. Pages of a site share most of their hrefs, so the answer is cached across pages (0.3 µs a known
# reference instead of 1.2), and emptied when full: about 16 MB.
_FROM_ROOT, _WHOLE, _INTRICATE, _QUERY, _BESIDE = -1, -2, -3, -4, -5
_Way = tuple[int, str]
# Whether the URL standard leaves "http://host:port" as it is. The standard's parser is asked once for each.
_origins: Memo[str, bool] = Memo(lambda origin: resolve_url(f"{origin}/") == f"{origin}/", 1 << 14)


class ReferenceResolver:
    """Resolves the hrefs of one page against its base.

    A page has about a hundred references, and a full parse costs 2.4 to 6 µs each. Most are plain: absolute, from the
    root, without a scheme, in the same folder or in one above, or a query, with or without a fragment, in characters
    that the URL standard leaves alone. For those a few cheap tests prove that joining is concatenation; all others go
    to the standard's parser. A property test checks that both agree.
    """

    __slots__ = ("_folders", "_intricate", "_origin", "_page", "base")

    def __init__(self, base: str) -> None:
        self.base = base
        slash = base.find("/", 8) if base.startswith(("http://", "https://")) else -1
        path = base.partition("?")[0].partition("#")[0]
        # Empty if the base is not hierarchical or too long: then nothing is concatenated.
        usable = slash > 0 and len(base) < _SHORT
        self._origin = base[:slash] if usable else ""
        self._folders = [path[: path.rfind("/") + 1] if usable else ""]  # the base's own and those above it
        self._page = path if usable and _plain(path, slash) else ""
        self._intricate: dict[str, str | None] = {}  # references that went to the parser

    def __call__(self, href: str) -> str | None:
        """Absolute http(s) URL without fragment, or None if the reference leads nowhere."""
        if href in self._intricate:
            return self._intricate[href]
        target = self.concatenated(href)
        if target is None and not _other_scheme(href):
            target = resolve_url(href, self.base)
            self._intricate[href] = target
        return target

    def plain(self, references: list[str | None]) -> list[str | None]:
        """Targets of those that can be joined without the parser; None for all others."""
        if _join_all is None:
            return [self.concatenated(one) if one else None for one in references]
        return _join_all(references, self._origin, self._folders[0], self._page, _origins, _SHORT)

    def concatenated(self, href: str) -> str | None:
        """The same for one reference."""
        way, rest = _ways[href]
        if way == _WHOLE:
            return rest
        if way == _INTRICATE or not self._origin:
            return None
        if way == _FROM_ROOT:
            return self._origin + rest
        if way == _QUERY:
            return self._page + rest if self._page else None
        if way == _BESIDE:
            target = self._origin.partition(":")[0] + ":" + rest
            return target if "/" in rest[2:] and _has_plain_origin(target) else None
        return (self._folders[way] if way < len(self._folders) else self._above(way)) + rest

    def _above(self, way: int) -> str:
        """The folder `way` levels above the base's own. Two dots at the root lead to the root again."""
        folders = self._folders
        while len(folders) <= way:
            last = folders[-1]
            folders.append(last[: max(last.rfind("/", 0, -1), len(self._origin)) + 1])
        return folders[way]


def resolve_absolute(iri: str) -> str | None:
    """`quadloom.model.url.resolve` for an absolute IRI. Most of them need no parser."""
    way, rest = _way(iri)
    return rest if way == _WHOLE else resolve_url(iri)


def _way(href: str) -> _Way:
    way, rest = _INTRICATE, href.partition("#")[0]
    if not rest or not _plain(rest) or len(rest) > _SHORT:
        pass
    elif rest[0] == ".":
        way, rest = _upwards(rest)
    elif "/." not in rest:
        if rest[0] == "/":
            way = _FROM_ROOT if rest[1:2] != "/" else _BESIDE
        elif ":" not in rest:
            way = 0 if rest[0] != "?" else _QUERY
        elif rest[:4] == "http" and _has_plain_origin(rest):
            way = _WHOLE
            if rest.find("/", 8) < 0:
                rest += "/"
    return way, rest


_ways = Memo(_way, 1 << 16)


def _upwards(rest: str) -> _Way:
    """For a reference that begins with a dot."""
    up = 0
    if rest[:2] == "./":
        rest = rest[2:]
    while rest[:3] == "../" and up < _HIGHEST:
        rest = rest[3:]
        up += 1
    return (up if rest[:1] not in (".", "?") and "/." not in rest and ":" not in rest else _INTRICATE), rest


_HIGHEST = 16  # folders up


def _has_plain_origin(href: str) -> bool:
    slash = href.find("/", 8)
    end = slash if slash >= 0 else len(href)
    return 8 <= end <= _LONGEST_ORIGIN and _origins[href[:end]]
