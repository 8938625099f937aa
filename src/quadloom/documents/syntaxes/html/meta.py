"""What `<head>` says: title, description, language, robots, Dublin Core, Open Graph and other names, as facts and RDF.

Only names with an agreed meaning become statements. A page's `<meta>` elements also carry security tokens and build
numbers that differ on every visit; if all of them counted, every page would look changed every time.

Open Graph becomes the terms that an RDFa 1.1 processor derives from the same markup (`og:` is in its initial context),
with the same literals, so that the two readings coincide. Common mistakes count too: `name` instead of `property`, and
object types (`article:`, `book:`, …) whose prefixes are not declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.links import read_refresh
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import iri, literal
from quadloom.model.link import stated_rhythm

DCTERMS = "http://purl.org/dc/terms/"
DC = "http://purl.org/dc/elements/1.1/"
OWN = "urn:quadloom:meta:"  # names without a vocabulary of their own: <urn:quadloom:meta:twitter:card>

MAX_METAS = 500
MAX_VALUE = 4000  # characters of one value

_META = ("content", "name", "property", "http-equiv")

_NAMES = {
    "author": f"<{DCTERMS}creator>",
    "creator": f"<{DCTERMS}creator>",
    "publisher": f"<{DCTERMS}publisher>",
    "rights": f"<{DCTERMS}rights>",
    "copyright": f"<{DCTERMS}rights>",
    "date": f"<{DCTERMS}date>",
    "keywords": f"<{DCTERMS}subject>",
    "news_keywords": f"<{DCTERMS}subject>",
    "generator": f"<{OWN}generator>",
    "application-name": f"<{OWN}application-name>",
    "icbm": f"<{OWN}icbm>",
}
_LISTS = frozenset(("keywords", "news_keywords"))
_PREFIXES = ("twitter:", "citation_", "geo.", "prism.", "eprints.", "bepress_citation_")
# DC-HTML refinements written with dots: DC.date.created is dcterms:created.
_TERM_NAMES = (
    "abstract accessRights alternative audience available bibliographicCitation conformsTo created creator "
    "date dateAccepted dateCopyrighted dateSubmitted description extent format hasFormat hasPart hasVersion "
    "identifier instructionalMethod isFormatOf isPartOf isReferencedBy isReplacedBy isRequiredBy issued "
    "isVersionOf language license mediator medium modified provenance publisher references relation replaces "
    "requires rights rightsHolder source spatial subject tableOfContents temporal title type valid"
)
_TERM_BY_LOWER = {term.lower(): term for term in _TERM_NAMES.split()}
_ELEMENT_NAMES = (
    "contributor coverage creator date description format identifier language publisher relation rights "
    "source subject title type"
)
_ELEMENTS = frozenset(_ELEMENT_NAMES.split())
_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*\Z")
_DUBLIN = re.compile(r"(dc|dcterms)[.:]([a-z.]+)\Z")


def read_head(context: Context, resolver: ReferenceResolver) -> None:
    """Facts of the head: title, description, language, what robots may do, and a redirect by `<meta>`."""
    facts = context.facts
    elements = context.all_elements
    if len(elements):
        attributes = elements.attributes(0)
        facts.language = _language(attributes.get("lang") or attributes.get("xml:lang") or "")
    drawings = elements.named("svg")
    for title in elements.named("title")[:8]:
        if not drawings or title < drawings[0] or not _in_drawing(elements, title):
            facts.title = " ".join(elements.text(title).split())[:MAX_VALUE]
            break
    metas = facts.metas
    refresh = ""
    for content, name, other, equivalent in elements.values(elements.named("meta")[:MAX_METAS], _META):
        if not content:
            continue
        name = name or other
        if name:
            metas.append((name.strip().lower(), content))
        else:
            equivalent = (equivalent or "").lower()
            if equivalent == "refresh":
                refresh = content
            elif equivalent == "content-language" and not facts.language:
                facts.language = _language(content.partition(",")[0])
    by_name = dict(reversed(metas))  # the first of a name wins
    facts.title = facts.title or " ".join(by_name.get("og:title", "").split())[:MAX_VALUE]
    described = by_name.get("description") or by_name.get("og:description") or by_name.get("twitter:description") or ""
    facts.description = " ".join(described.split())[:MAX_VALUE]
    if rhythm := stated_rhythm(by_name.get("revisit-after", "")):
        facts.rhythms.append((context.url, rhythm))
    if metas:
        read_robots(context)
    if refresh:
        read_refresh(context, refresh, resolver)


def read_robots(context: Context) -> None:
    """What robots may do: `<meta>` and `X-Robots-Tag` merged. Documents without `<meta>` have only the header.

    Both may address all robots or one by name. What addresses us by name replaces what addresses all; within what
    applies, every restriction counts. `none` means noindex and nofollow.
    """
    if context.settings.politeness.robots == "ignore":
        return
    headers = [value for name, value in context.headers if name == "x-robots-tag"]
    said = merge(context.facts.metas, headers, context.settings.crawl.user_agent)
    context.facts.noindex = said.noindex
    context.facts.nofollow = said.nofollow
    context.facts.noarchive = said.noarchive


def read_meta(context: Context) -> None:
    """State what `<meta>` elements say whose names have an agreed meaning."""
    page = iri(context.url)
    if page is None:
        return
    language = context.facts.language
    for name, content in context.facts.metas:
        predicate = _NAMES.get(name) or _dublin_core(name)
        if predicate is None and name.startswith(_PREFIXES):
            predicate = iri(OWN + name)
        if predicate is None:
            continue
        value = " ".join(content.split())[:MAX_VALUE]
        if name in _LISTS:
            for word in value.split(",")[:50]:
                if word.strip():
                    context.sink.add(page, predicate, literal(word.strip(), language))
        elif value:
            context.sink.add(
                page, predicate, literal(value, language if "title" in name or "description" in name else "")
            )


def _language(text: str) -> str:
    """A well-formed language tag (BCP 47) or nothing; `en_GB`, as many write it, is `en-GB`."""
    tag = text.strip().replace("_", "-")
    return tag if _TAG.match(tag) else ""


def _in_drawing(elements: Elements, title: int) -> bool:
    """Whether a `<title>` names a part of an inline SVG instead of the page."""
    at = elements.parent(title)
    while at >= 0:
        if elements.tag(at) == "svg":
            return True
        at = elements.parent(at)
    return False


def _dublin_core(name: str) -> str | None:
    """`DC.title`, `dcterms.created`, `DC.date.created` by DC-HTML; None for other names."""
    match = _DUBLIN.match(name)
    if match is None:
        return None
    prefix, path = match.groups()
    last = path.rpartition(".")[2]
    if prefix == "dc" and "." not in path and last in _ELEMENTS:
        return f"<{DC}{last}>"
    term = _TERM_BY_LOWER.get(last)
    return f"<{DCTERMS}{term}>" if term else None


class RobotsDirectives(msgspec.Struct, frozen=True):
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False


_NOTHING = RobotsDirectives()
_WORDS = frozenset(("noindex", "nofollow", "noarchive", "none", "nocache", "all", "index", "follow", "archive"))
# Values with a colon of their own; anything else before a colon is the name of a robot.
_PARAMETERS = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))


def merge(metas: Iterable[tuple[str, str]], headers: Iterable[str], robot: str) -> RobotsDirectives:
    """Directives for `robot` from (name, content) pairs of `<meta>` in lower-case names, and X-Robots-Tag values."""
    robot = robot.lower()
    to_all: set[str] = set()
    to_us: set[str] = set()
    for name, content in metas:
        if name == "robots":
            to_all.update(_split(content))
        elif name == robot:
            to_us.update(_split(content))
    for value in headers:
        _read_header(value, robot, to_all, to_us)
    words = to_us or to_all
    if not words:
        return _NOTHING
    none = "none" in words
    return RobotsDirectives(
        none or "noindex" in words, none or "nofollow" in words, "noarchive" in words or "nocache" in words
    )


def _split(content: str) -> list[str]:
    return [word.strip().lower() for word in content.split(",")]


def _read_header(value: str, robot: str, to_all: set[str], to_us: set[str]) -> None:
    # "noindex, googlebot: nofollow, noarchive": a name holds for all that follows it in the same header.
    into: set[str] | None = to_all
    for part in _split(value):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _PARAMETERS:
            into = to_us if name.strip() == robot else to_all if name.strip() == "robots" else None
            part = rest.strip()
        if into is not None and part in _WORDS:
            into.add(part)


OG = "http://ogp.me/ns#"

_NAMESPACES = {
    "og": OG,
    "article": "http://ogp.me/ns/article#",
    "book": "http://ogp.me/ns/book#",
    "profile": "http://ogp.me/ns/profile#",
    "video": "http://ogp.me/ns/video#",
    "music": "http://ogp.me/ns/music#",
    "product": "http://ogp.me/ns/product#",
    "fb": "http://ogp.me/ns/fb#",
}
_NAME = re.compile(r"[a-z][a-z0-9_:-]*\Z")


def read_opengraph(context: Context) -> None:
    """State every Open Graph property of the page."""
    subject = iri(context.base)
    if subject is None:
        return
    language = context.facts.language
    for name, content in context.facts.metas:
        prefix, colon, rest = name.partition(":")
        namespace = _NAMESPACES.get(prefix) if colon else None
        if namespace is not None and _NAME.match(rest):
            context.sink.add(subject, f"<{namespace}{rest}>", literal(content, language))
