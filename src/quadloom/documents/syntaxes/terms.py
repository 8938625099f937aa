"""RDF terms as N-Triples text. The only place where a string from the web becomes a term.

Extractors work on text instead of term objects because text is what leaves the process: a 60-quad page costs
60 string joins here and about ten times that with objects. In return nothing may be written that a strict parser
would refuse, so IRIs are checked and literals escaped in these few functions.
"""

from __future__ import annotations

import re
from functools import lru_cache

import ada_url
import pyoxigraph

from quadloom.model.url import encoded

try:
    from quadloom.documents.native import terms as _native
except ImportError:  # it was not built: there is no compiler
    _native = None  # type: ignore[assignment]

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = f"<{RDF}type>"

# N-Triples IRIREF forbids these; a strict parser refuses the whole line, so such an IRI is no IRI.
_BAD_IRI = re.compile('[\x00-\x20<>"{}|^`\\\\\ud800-\udfff]')
# What may still be refused: brackets outside an IPv6 host, broken percent-encoding, two fragments, private characters,
# and invalid hosts or ports.
_DOUBTFUL = re.compile(
    "[\\[\\]%]|#.*#|[\x7f-\x9f\u200e\u200f\u202a-\u202e\ufdd0-\uffff\ue000-\uf8ff]|[\U0001fffe-\U0010ffff]|//[^/?#]*[:@,;!$&'()*+=]"
)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Most IRIs have a name, perhaps a port, and only characters that every parser accepts. One match of simple classes
# costs a quarter of a search for all that could be wrong (0.5 instead of 2 µs).
_PLAIN = re.compile(
    r"https?://[A-Za-z0-9.-]++(?::[0-9]{1,5})?+(?:/[\w.~!$&'()*+,;=:@/-]*+)?+(?:\?[\w.~!$&'()*+,;=:@/?-]*+)?+"
    r"(?:#[\w.~!$&'()*+,;=:@/?-]*+)?+\Z",
    re.ASCII,
).match
_LANGUAGE = re.compile(
    r"[A-Za-z]{2,3}(-[A-Za-z]{4})?(-(?:[A-Za-z]{2}|[0-9]{3}))?\Z"
)  # nearly all; `_is_language` checks the others
_LONGEST_LANGUAGE = 128  # BCP 47 (4.4.1) asks for 35; one of 100 KB on every literal would multiply a page
_SURROGATE = re.compile("[\ud800-\udfff]")


def iri_in_python(value: str) -> str | None:
    """`<value>`, or None if it is not an absolute IRI that N-Quads can carry.

    Brackets, stray percent signs and second fragments, which sites use freely and RFC 3987 forbids, are encoded.
    """
    if _PLAIN(value):
        return f"<{value}>"
    return _checked_iri(value)


def _checked_iri(value: str) -> str | None:
    if _BAD_IRI.search(value) or not _ABSOLUTE.match(value):
        return None
    if _DOUBTFUL.search(value):
        value = encoded(value)
        try:
            pyoxigraph.NamedNode(value)
        except ValueError:
            return None
    return f"<{value}>"


def literal_in_python(text: str, language: str = "", datatype: str = "") -> str:
    """A literal. A language tag that is not well-formed is dropped; U+0000 and lone surrogates become U+FFFD."""
    if not text.isascii() or '"' in text or "\\" in text or "\n" in text or "\r" in text or "\x00" in text:
        text = _escaped(text)
    if language and (_LANGUAGE.match(language) or _is_language(language)):
        return f'"{text}"@{language.lower()}'
    if datatype:
        return f'"{text}"^^<{datatype}>'
    return f'"{text}"'


iri = _native.iri_with(iri_in_python) if _native is not None else iri_in_python
literal = _native.literal_with(literal_in_python) if _native is not None else literal_in_python


@lru_cache(maxsize=1024)
def _is_language(tag: str) -> bool:
    """Whether BCP 47 knows a tag of this form."""
    if len(tag) > _LONGEST_LANGUAGE:
        return False
    try:
        pyoxigraph.Literal("", language=tag)
    except ValueError:
        return False
    return tag.isascii()


def join(base: str, reference: str) -> str:
    """Absolute IRI of a reference by the WHATWG rules; an unresolvable reference comes back unchanged."""
    try:
        joined: str = ada_url.join_url(base, reference)
    except ValueError:
        return reference
    return joined


def _escaped(text: str) -> str:
    """The text between the quotes. Plain searches and replacements: a 12 KB article takes 1 to 30 µs this way and 50 to
    200 with one regular expression."""
    if "\\" in text:  # first: the other replacements add backslashes
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\r" in text:
        text = text.replace("\r", "\\r")
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = _SURROGATE.sub("\ufffd", text)
    return text
