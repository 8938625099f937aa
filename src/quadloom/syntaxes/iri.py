"""IRIs as JSON-LD needs them: RFC 3986 resolution and RFC 3987 well-formedness.

JSON-LD resolves by RFC 3986 section 5, not by the WHATWG rules that browsers use: `http:g` keeps its scheme, nothing is
percent-encoded, and a base such as `tag:example` works. So `terms.join` is not used here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address

_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S*\Z")

# RFC 3987 ucschar and iprivate. Python's regular expressions have no possessive groups before 3.11's `++`, and a group
# per character is slow, so `%` is one of the characters here and its two digits are checked on their own below.
_UCS = "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16 | (0x1000 if plane == 14 else 0))}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_UNRESERVED_SUB = rf"A-Za-z0-9\-._~!$&'()*+,;=%{_UCS}"
_WELL_FORMED = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*:"
    rf"(?://(?:[{_UNRESERVED_SUB}:]*@)?(?:\[[0-9A-Fa-f:.]+\]|\[[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+\]|"
    rf"[{_UNRESERVED_SUB}]*)(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
    rf"[{_UNRESERVED_SUB}:@/]*"
    rf"(?:\?[{_UNRESERVED_SUB}:@/?{_PRIVATE}]*)?"
    rf"(?:\#[{_UNRESERVED_SUB}:@/?]*)?"
)
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_MEMORABLE = 512  # longer strings are not kept in memory between documents
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


def has_iri_form(value: str) -> bool:
    """Whether `value` starts with a scheme and has no white space: the test that expansion uses."""
    return _ABSOLUTE.match(value) is not None


def is_well_formed(value: str) -> bool:
    """Whether `value` is an absolute IRI that every N-Quads parser accepts."""
    if _WELL_FORMED.fullmatch(value) is None or ("%" in value and _BAD_PERCENT.search(value)):
        return False
    return "://[" not in value or _has_address(value)


def _has_address(value: str) -> bool:
    host = value[value.index("[") + 1 : value.index("]")]
    if host[:1] in "vV":
        return True
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def is_language(tag: str) -> bool:
    return len(tag) <= 128 and _LANGUAGE.fullmatch(tag) is not None  # as in `terms`: longer ones multiply a page


def resolve(base: str, reference: str) -> str:
    """The target of `reference` seen from `base` (RFC 3986, 5.2.2 strict)."""
    if len(reference) > _MEMORABLE:
        return _resolve.__wrapped__(base, reference)
    return _resolve(base, reference)


@lru_cache(maxsize=1024)
def _resolve(base: str, reference: str) -> str:
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is None:
        base_scheme, base_authority, base_path, base_query, _ = _split(base)
        scheme = base_scheme
        if authority is None:
            authority = base_authority
            if not path:
                path = base_path
                query = base_query if query is None else query
            elif not path.startswith("/"):
                path = _remove_dots(_merge(base_authority, base_path, path))
            else:
                path = _remove_dots(path)
        else:
            path = _remove_dots(path)
    else:
        path = _remove_dots(path)
    return "".join(
        (
            "" if scheme is None else f"{scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
    )


def _split(value: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.match(value)
    if match is None:  # the expression matches the empty string, so it matches everything
        return None, None, value, None, None
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _merge(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _remove_dots(path: str) -> str:
    """RFC 3986, 5.2.4, segment by segment. `..` above the root vanishes."""
    if "." not in path:
        return path
    rooted = path.startswith("/")
    segments = path.split("/")[1:] if rooted else path.split("/")
    out: list[str] = []
    for segment in segments:
        if segment == "..":
            if out:
                out.pop()
        elif segment != ".":
            out.append(segment)
    if segments[-1] in (".", ".."):
        out.append("")
    return ("/" if rooted else "") + "/".join(out)
