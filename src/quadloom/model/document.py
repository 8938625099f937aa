"""What a page is, and everything the transform phase reads out of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from quadloom.model.finding import Finding
from quadloom.model.link import Link

Kind = Literal[
    "html", "xhtml", "xml", "svg", "wsdl", "xsd", "rss", "atom", "jsonfeed", "opml", "sitemap", "sitemapindex",
    "opensearch", "xslt", "rdfxml", "turtle", "trig", "ntriples", "nquads", "jsonld", "json", "text", "image", "pdf",
    "audio", "video", "archive", "css", "javascript", "binary", "empty",
]  # fmt: skip


class Document(msgspec.Struct, frozen=True, array_like=True):
    """Verdict of the detect phase. `reasons` tell a person how it was reached, in order."""

    kind: Kind
    media_type: str = ""
    charset: str = ""
    language: str = ""
    root: str = ""  # XML kinds: {namespace}local of the root element
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class Transformed(msgspec.Struct, frozen=True):
    """All that one resource says: statements, links, words and defects.

    `nquads` has the page's URL as graph name and keeps blank nodes (`_:b0` …); the index phase skolemises them.
    Statements come in a stable order for a given input. Link quads are not in here: `links` has all links, and
    the index phase stores the kinds that the setting `index.links` asks for.
    """

    url: str
    kind: Kind
    nquads: bytes = b""
    links: tuple[Link, ...] = ()
    text: str = ""  # main text, whitespace folded
    title: str = ""
    description: str = ""
    language: str = ""
    charset: str = ""
    media_type: str = ""
    canonical: str = ""  # the page's own rel=canonical, absolute
    types: tuple[str, ...] = ()  # rdf:type objects, distinct, as IRIs
    syntaxes: tuple[tuple[str, int], ...] = ()  # (syntax, quads) for each that gave any
    mails: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    noindex: bool = False  # meta robots and X-Robots-Tag, merged
    nofollow: bool = False
    noarchive: bool = False
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    lastmods: tuple[tuple[str, float], ...] = ()  # sitemaps and feeds: (URL, unix time)


class PushOffer(msgspec.Struct, frozen=True, array_like=True):
    """`topic`: the page's own name for itself, which the hub knows it by. Both are absolute."""

    topic: str
    hub: str
