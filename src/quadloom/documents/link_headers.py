"""`Link:` headers (RFC 8288): relations that a response states outside of its body, such as a description in RDF.

Parsed as browsers do: what is not valid is skipped up to the next comma outside quotes and angle brackets. One pass,
no regular expression over the whole value, at most `MAX_LINKS` results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from quadloom.model.url import resolve

MAX_LINKS = 100
MAX_VALUE = 65536


class HeaderLink(msgspec.Struct, frozen=True, array_like=True):
    """`target` is absolute; `rel` holds one or more words in lower case; `type` is a media type or ''."""

    target: str
    rel: str
    type: str = ""
    anchor: str = ""  # absolute: another context than the page itself
    title: str = ""


def of_headers(headers: Iterable[tuple[str, str]], base: str) -> list[HeaderLink]:
    """Links of all `link` headers of a response (names in lower case), resolved against its URL."""
    found: list[HeaderLink] = []
    for name, value in headers:
        if name == "link":
            for link in parse(value, base):
                if len(found) == MAX_LINKS:
                    return found
                found.append(link)
    return found


def parse(value: str, base: str) -> Iterator[HeaderLink]:
    """Links of one header value, in order."""
    value = value[:MAX_VALUE]
    at = 0
    while (at := value.find("<", at)) >= 0:
        end = value.find(">", at)
        if end < 0:
            return
        reference = value[at + 1 : end].strip()
        parameters, at = _parameters(value, end + 1)
        target = resolve(reference, base)
        rel = " ".join(parameters.get("rel", "").lower().split())
        if target is not None and rel:
            anchor = parameters.get("anchor", "")
            yield HeaderLink(
                target,
                rel,
                parameters.get("type", "").strip().lower(),
                (resolve(anchor, base) or "") if anchor else "",
                parameters.get("title", ""),
            )


def _parameters(value: str, at: int) -> tuple[dict[str, str], int]:
    """`; name=value` pairs from `at` up to the comma that ends the link; the first of a name counts (RFC 8288 3.3)."""
    found: dict[str, str] = {}
    length = len(value)
    while at < length and value[at] != ",":
        if value[at] in "; \t":
            at += 1
            continue
        start = at
        while at < length and value[at] not in "=;,":
            at += 1
        name = value[start:at].strip().lower()
        text = ""
        if at < length and value[at] == "=":
            text, at = _value(value, at + 1)
        found.setdefault(name, text)
    return found, at + 1


def _value(value: str, at: int) -> tuple[str, int]:
    """A token or a quoted string with backslash escapes."""
    length = len(value)
    while at < length and value[at] in " \t":
        at += 1
    if at < length and value[at] == '"':
        at += 1
        chars: list[str] = []
        while at < length and value[at] != '"':
            if value[at] == "\\" and at + 1 < length:
                at += 1
            chars.append(value[at])
            at += 1
        return "".join(chars), at + 1
    start = at
    while at < length and value[at] not in ";,":
        at += 1
    return value[start:at].strip(), at
