"""Reference resolution by RFC 3986, section 5, for IRIs that RDF compares character by character.

The crawler's own URLs follow the WHATWG rules, which rewrite what they parse: `http://example.org` gains a slash and
letters are percent-encoded. RDFa says RFC 3986, and a statement about `http://example.org` must stay one. Only
characters that no IRI may contain are percent-encoded here, because dropping the statement would help nobody.
"""

from __future__ import annotations

import re

from quadloom.syntaxes.terms import iri as term_of

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//[^/?#]*)?([^?#]*)(\?[^#]*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FORBIDDEN = re.compile('[\x00-\x20<>"{}|^`\\\\\ud800-\udfff]')


class BaseIri:
    """The IRI that references are resolved against. Its fragment is dropped (RFC 3986, 5.1)."""

    __slots__ = ("_authority", "_directory", "_path", "_scheme", "iri")

    def __init__(self, iri: str) -> None:
        self.iri = encoded(iri.strip().partition("#")[0])
        parts = _PARTS.match(self.iri)
        self._scheme, self._authority, self._path = "", "", ""
        if parts:
            self._scheme = f"{parts[1]}:"
            self._authority = parts[2] or ""
            self._path = parts[3]
        directory = self._path[: self._path.rfind("/") + 1]
        self._directory = directory or ("/" if self._authority else "")

    def moved(self, reference: str) -> BaseIri:
        """The base that `<base href>` or `xml:base` makes of this one; itself where RDF could not carry the result."""
        term = term_of(self.resolve(reference))
        return BaseIri(term[1:-1]) if term else self

    def resolve(self, reference: str) -> str:
        reference = reference.strip(" \t\r\n\f")
        if _FORBIDDEN.search(reference):
            reference = encoded(reference)
        if not reference:
            return self.iri
        first = reference[0]
        if first == "#":
            return self.iri + reference
        if _SCHEME.match(reference):
            return _without_dots_in(reference) if "/." in reference else reference
        if first == "?":
            return f"{self._scheme}{self._authority}{self._path}{reference}"
        if reference.startswith("//"):
            return _without_dots_in(self._scheme + reference)
        path, tail = _split_tail(reference)
        if first != "/":
            path = self._directory + path
        return f"{self._scheme}{self._authority}{_without_dots(path)}{tail}"


def is_absolute(iri: str) -> bool:
    return _SCHEME.match(iri) is not None


def encoded(iri: str) -> str:
    """The IRI with forbidden characters percent-encoded; line breaks and tabs inside it vanish, as in browsers."""
    if not _FORBIDDEN.search(iri):
        return iri
    return _FORBIDDEN.sub(_percent, iri)


def _percent(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\t\r\n":
        return ""
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _split_tail(reference: str) -> tuple[str, str]:
    """Path, and query with fragment."""
    end = len(reference)
    for mark in "?#":
        found = reference.find(mark, 0, end)
        if found >= 0:
            end = found
    return reference[:end], reference[end:]


def _without_dots_in(iri: str) -> str:
    parts = _PARTS.match(iri)
    if not parts or not parts[3].startswith("/"):
        return iri
    return iri[: parts.start(3)] + _without_dots(parts[3]) + iri[parts.end(3) :]


def _without_dots(path: str) -> str:
    """RFC 3986, 5.2.4, in one pass over the segments."""
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
