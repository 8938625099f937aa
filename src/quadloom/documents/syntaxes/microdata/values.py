"""The value of a microdata property element in RDF, and the registry of vocabularies.

The rules are those of "property value" in the W3C note *Microdata to RDF* (second edition). A lexical form must be
valid in HTML *and* in XML Schema to be typed, so `10:30` stays a plain literal: `xsd:time` needs seconds.

The registry says which type belongs to which vocabulary, and what a property implies. A type is matched against the
prefixes character for character; without a match the vocabulary is the type cut after its `#`, or after the last `/` of
its path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.terms import RDF, XSD, iri, join, literal

_URL_ATTRIBUTES = {
    "object": "data",
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
}
_INTEGER = re.compile(r"-?[0-9]+\Z")
_DOUBLE = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_ZONE = r"(?:Z|[-+](?:0[0-9]|1[0-4]):[0-5][0-9])?"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_DAY = r"[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_TIMES = (
    (re.compile(rf"{_DAY}{_ZONE}\Z"), "date"),
    (re.compile(rf"{_DAY}T{_CLOCK}{_ZONE}\Z"), "dateTime"),
    (re.compile(rf"{_CLOCK}{_ZONE}\Z"), "time"),
    (re.compile(r"[0-9]{4,}-(?:0[1-9]|1[0-2])\Z"), "gYearMonth"),
    (re.compile(r"[0-9]{4,}\Z"), "gYear"),
    (
        re.compile(
            r"P(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
            r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?\Z"
        ),
        "duration",
    ),
)


class Languages:
    """The language of any element, by the nearest `lang` attribute. Each ancestor is examined once for all elements."""

    __slots__ = ("_default", "_elements", "_known", "_varies")

    def __init__(self, elements: Elements) -> None:
        tagged = elements.having(("lang",))
        self._elements = elements
        self._known: dict[int, str] = {}
        # Nearly always the root alone is tagged, and then its language is that of all.
        self._varies = len(tagged) > 1 or (len(tagged) == 1 and elements.tag(tagged[0]) != "html")
        uniform = tagged and not self._varies
        self._default = (elements.attributes(tagged[0])["lang"] or "") if uniform else _pragma_language(elements)

    def of(self, number: int) -> str:
        if not self._varies:
            return self._default
        passed: list[int] = []
        language = self._default
        at = number
        while at >= 0:
            if at in self._known:
                language = self._known[at]
                break
            passed.append(at)
            attributes = self._elements.attributes(at)
            if "lang" in attributes:
                language = attributes["lang"] or ""
                break
            at = self._elements.parent(at)
        for at in passed:
            self._known[at] = language
        return language


def _pragma_language(elements: Elements) -> str:
    """HTML 4.2.5.3: `<meta http-equiv=content-language>` sets the default, unless it lists several languages."""
    for name, content in elements.values(elements.named("meta"), ("http-equiv", "content")):
        if name is not None and name.lower() == "content-language":
            content = (content or "").strip()
            return "" if "," in content else content
    return ""


def resolve(resolver: ReferenceResolver, reference: str) -> str | None:
    """The IRI of a reference. One that is absolute stays as written: RDF compares IRIs by character (RDF 1.1, 3.2), so
    `http://a.example` must not become `http://a.example/`."""
    term = iri(reference)
    if term is None:
        joined = resolver.concatenated(reference) if "#" not in reference else None
        term = iri(joined or join(resolver.base, reference))
    return term


def value_of(
    elements: Elements,
    number: int,
    attributes: dict[str, str | None],
    resolver: ReferenceResolver,
    languages: Languages,
) -> str | None:
    """The N-Triples term of a property element that is not an item; None if it has no value."""
    tag = elements.tag(number)
    url_attribute = _URL_ATTRIBUTES.get(tag)
    if url_attribute in attributes:
        return resolve(resolver, (attributes[url_attribute] or "").strip())
    if tag in ("data", "meter") and "value" in attributes:
        return _number(attributes["value"] or "")
    # The note knows `content` on `meta` only. Authors write it everywhere (`<span itemprop=price content=9.5>`), and
    # HTML Microdata (W3C, 2018) gave in.
    text = attributes.get("datetime") if tag == "time" else None
    if text is None:
        text = attributes.get("content")
    if text is None:
        if url_attribute is not None:
            return None
        text = "" if tag in ("meta", "data", "meter") else elements.text(number)
    return (_moment(text.strip()) if tag == "time" else None) or literal(text, languages.of(number))


def _number(value: str) -> str:
    if _INTEGER.match(value):
        return literal(value, datatype=f"{XSD}integer")
    if _DOUBLE.match(value):
        return literal(value, datatype=f"{XSD}double")
    return literal(value)


def _moment(value: str) -> str | None:
    for pattern, name in _TIMES:
        if pattern.match(value) and (not name.startswith("date") or _is_day(value[: value.index("-") + 6])):
            return literal(value, datatype=XSD + name)
    return None


def _is_day(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        # Years beyond 9999 are legal in both specifications; `date` cannot hold them: month and day are checked alone.
        return len(day) > 10 and 1 <= int(day[-5:-3]) <= 12 and 1 <= int(day[-2:]) <= 31
    return True


# Property name -> the properties it is a sub-property of or equivalent to; each gives one more statement.
Expansions = Mapping[str, tuple[str, ...]]

_TYPE = (f"{RDF}type",)
REGISTRY: Mapping[str, Expansions] = {
    # The published registry at http://www.w3.org/ns/md knows the http form only; most pages write https today.
    "http://schema.org/": {"additionalType": _TYPE},
    "https://schema.org/": {"additionalType": _TYPE},
    # The properties are fragments of the type itself: the note's own example has `hcard#given-name`.
    "http://microformats.org/profile/hcard": {},
    # The artificial vocabulary of the W3C suite. Its two cases name no registry, so it must be in the default one;
    # no public host can be called `expansion`.
    "http://expansion/": {"subPropertyOf": _TYPE, "equivalentProperty": _TYPE},
}


def vocabulary_of(kind: str, registry: Mapping[str, Expansions]) -> tuple[str, Expansions]:
    """The vocabulary of an item type (an absolute URL) and its expansions."""
    for prefix, expansions in registry.items():
        if kind.startswith(prefix):
            return prefix, expansions
    head, mark, _ = kind.partition("#")
    if mark:
        return head + mark, {}
    path = kind.partition("?")[0]
    authority = path.find("//")
    cut = path.rfind("/", authority + 2 if authority >= 0 else 0)
    return (path[: cut + 1] if cut >= 0 else path), {}
