"""HTML itself: base, head, links, images, mail addresses and text. Runs first; the other syntaxes build on its facts.

The statements follow MultiCrawler's choice of vocabularies (RDFS, Dublin Core, FOAF), listed in
docs/reference/vocabulary.md.
"""

from __future__ import annotations

from quadloom.documents.syntaxes.html.links import read_links
from quadloom.documents.syntaxes.html.meta import DCTERMS, read_head, read_meta, read_opengraph
from quadloom.documents.syntaxes.html.text import read_text
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import iri, literal
from quadloom.model.url import resolve

FOAF = "http://xmlns.com/foaf/0.1/"

MAX_DEPICTIONS = 16  # images stated as quads; all are in the page's record


def extract(body: bytes, *, url: str) -> bytes:
    """N-Triples of one page: what it says by plain HTML, by the names of its `<meta>` elements and by Open Graph."""
    context = Context.standalone(body, "html", url=url)
    read(context)
    read_meta(context)
    read_opengraph(context)
    return context.sink.nquads()


def read(context: Context) -> None:
    """Everything the page says by plain HTML."""
    context.base = _base(context)
    resolver = ReferenceResolver(context.base)
    read_head(context, resolver)
    read_links(context, resolver)
    if context.settings.index.text:
        context.last_steps.append(read_text)
    _state(context)


def _base(context: Context) -> str:
    elements = context.all_elements
    for (href,) in elements.values(elements.named("base"), ("href",)):
        if href is not None:  # the first with an href counts, even a broken one
            return resolve(href.strip(), context.url) or context.url
    return context.url


def _state(context: Context) -> None:
    facts = context.facts
    page = iri(context.url)
    if page is None:
        return
    add = context.sink.add
    if facts.title:
        add(page, f"<{DCTERMS}title>", literal(facts.title, facts.language))
    if facts.description:
        add(page, f"<{DCTERMS}description>", literal(facts.description, facts.language))
    if facts.language:
        add(page, f"<{DCTERMS}language>", literal(facts.language))
    for address in facts.mails:
        mailbox = iri(f"mailto:{address}")
        if mailbox:
            add(page, f"<{FOAF}mbox>", mailbox)
    for number, image in enumerate(facts.images):
        if number == MAX_DEPICTIONS:
            break
        picture = iri(image)
        if picture:
            add(page, f"<{FOAF}depiction>", picture)
