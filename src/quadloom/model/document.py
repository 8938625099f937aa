"""What a page is, and everything the transform phase reads out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from quadloom.model.finding import Finding, PageAudit
from quadloom.model.link import Link
from quadloom.model.quads import NamedTriple, Triple, as_nquads

Kind = Literal[
    "html", "xhtml", "xml", "svg", "wsdl", "xsd", "rss", "atom", "jsonfeed", "opml", "sitemap", "sitemapindex",
    "opensearch", "xslt", "rdfxml", "turtle", "trig", "ntriples", "nquads", "jsonld", "json", "text", "image", "pdf",
    "office", "audio", "video", "archive", "css", "javascript", "binary", "empty",
]  # fmt: skip


class Document(msgspec.Struct, frozen=True, array_like=True):
    """The verdict of the detect phase. `reasons` tell a person how it was reached, in order."""

    kind: Kind
    media_type: str = ""
    charset: str = ""
    charset_source: str = ""  # where the charset was found: `quadloom.documents.syntaxes.charset.Source`
    root: str = ""  # XML kinds: {namespace}local of the root element
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class PageFacts(msgspec.Struct, frozen=True, array_like=True):
    """What a page is and says about itself, in a few words. Made once, by the transform phase; `Transformed` and
    `quadloom.documents.pipeline.PageResult` carry the same record."""

    kind: str  # a `Kind`, or what an imported dump says
    media_type: str = ""
    charset: str = ""
    language: str = ""
    title: str = ""
    canonical: str = ""  # the page's own rel=canonical, absolute
    syntaxes: tuple[tuple[str, int], ...] = ()  # (syntax, quads) for each that gave any
    noindex: bool = False  # meta robots and X-Robots-Tag, merged
    nofollow: bool = False
    noarchive: bool = False


class FactsCarrier(msgspec.Struct, frozen=True):
    """A record that carries `facts` and offers the usual ones by name."""

    facts: PageFacts

    @property
    def kind(self) -> str:
        return self.facts.kind

    @property
    def media_type(self) -> str:
        return self.facts.media_type

    @property
    def charset(self) -> str:
        return self.facts.charset

    @property
    def language(self) -> str:
        return self.facts.language

    @property
    def title(self) -> str:
        return self.facts.title

    @property
    def canonical(self) -> str:
        return self.facts.canonical

    @property
    def syntaxes(self) -> tuple[tuple[str, int], ...]:
        return self.facts.syntaxes

    @property
    def noindex(self) -> bool:
        return self.facts.noindex

    @property
    def nofollow(self) -> bool:
        return self.facts.nofollow

    @property
    def noarchive(self) -> bool:
        return self.facts.noarchive


class Transformed(FactsCarrier, frozen=True, dict=True):
    """All that one resource says: statements, links, words and defects.

    `triples` and `named` keep blank nodes (`_:b0` …); the index phase skolemises them. Statements come in a stable
    order for a given input. Link quads are not in here: `links` has all links, and the index phase stores the kinds
    that the setting `index.links` asks for.
    """

    url: str
    triples: tuple[Triple, ...] = ()
    named: tuple[NamedTriple, ...] = ()  # statements in graphs of the document's own
    links: tuple[Link, ...] = ()
    text: str = ""  # main text, whitespace folded; of HTML only with `index.text`
    headings: str = ""  # of the main part, one a line; so are the texts of its links and images
    link_texts: str = ""
    image_texts: str = ""
    description: str = ""
    types: tuple[str, ...] = ()  # rdf:type objects, distinct, as IRIs
    mails: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    lastmods: tuple[tuple[str, float], ...] = ()  # sitemaps and feeds: (URL, unix time)
    audit: PageAudit = PageAudit()
    rhythms: tuple[tuple[str, float], ...] = ()  # (URL, stated seconds between changes)
    main_spans: tuple[int, ...] = ()  # where the main text is in `text`: start, end, start, end …; () = it is all of it

    @property
    def main_text(self) -> str:
        """What the page is about: `text` without teasers, captions, comments and the like. Computed at each access."""
        return spanned(self.text, self.main_spans)

    @property
    def markdown(self) -> str:
        """The main part as Markdown, without HTML; "" if the document is neither a page nor a text. Read from the body
        at each access, so only the process that transformed a document has it."""
        write: Callable[[], str] = self.__dict__.get("write_markdown", str)
        return write()

    @property
    def nquads(self) -> bytes:
        """All statements as N-Quads, those without a graph of their own in the page's. Computed at each access."""
        return as_nquads(self.triples, self.named, self.url)


def spanned(text: str, spans: tuple[int, ...]) -> str:
    """The parts of a text between start, end, start, end …, one behind the other in lines; all of it without spans."""
    if not spans:
        return text
    return "\n".join([text[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)])


def complement(text: str, spans: tuple[int, ...]) -> str:
    """What `spanned` leaves out."""
    if not spans:
        return ""
    return spanned(text, (0, *spans, len(text))).strip()


class PushOffer(msgspec.Struct, frozen=True, array_like=True):
    """A page's offer to be pushed: its hub announces changes (WebSub). `topic` is the page's own name for itself, by
    which the hub knows it. Both are absolute."""

    topic: str
    hub: str
