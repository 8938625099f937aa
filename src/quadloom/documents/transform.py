"""TRANSFORM: everything a document says, as statements, links, words and findings.

A pure function of the body and its labels. Detect names the kind, the table of syntaxes names the extractors, and each
runs behind a boundary of its own: a broken block costs itself, never the rest of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from quadloom.documents.checks.page import NOTHING, PageChecks, check_page
from quadloom.documents.detect import Detected, detect_body
from quadloom.documents.syntaxes.external import ServicesNeeded, service_requests
from quadloom.documents.syntaxes.html.markdown import markdown_of, markdown_of_text
from quadloom.documents.syntaxes.html.meta import read_robots
from quadloom.documents.syntaxes.html.page import read
from quadloom.documents.syntaxes.html.shell import ENOUGH_TEXT, why_shell
from quadloom.documents.syntaxes.html.text import INLINE, main_holders, read_text
from quadloom.documents.syntaxes.html.tree import parse_html
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.rdf.links import data_links
from quadloom.documents.syntaxes.registry import Context, Loader, Reading, Registry
from quadloom.documents.syntaxes.sink import sink_limits
from quadloom.documents.syntaxes.terms import TYPE
from quadloom.documents.syntaxes.xml.validation import validate
from quadloom.documents.unpack import MAGIC, unpack
from quadloom.errors import QuadloomError, SyntaxInvalid, UsageError
from quadloom.model.document import PageFacts, Transformed
from quadloom.model.link import Link
from quadloom.model.quads import Triple
from quadloom.model.service import ServiceAnswer
from quadloom.settings import Settings

_DEFAULTS = Settings()
# What these syntaxes state is our description of the page, not its author's data, so their terms are no links to
# vocabularies.
OWN_WORDS = frozenset(
    ("html", "meta", "opengraph", "text", "rss", "atom", "jsonfeed", "sitemap", "opml", "opensearch", "svg")
)

_TITLED = 2000  # statements that are looked at for a title
_NAMES = frozenset(
    f"<{name}>"
    for name in (
        "http://schema.org/name",
        "https://schema.org/name",
        "http://schema.org/headline",
        "https://schema.org/headline",
        "http://xmlns.com/foaf/0.1/name",
        "http://www.w3.org/2000/01/rdf-schema#label",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://purl.org/dc/terms/title",
        "http://purl.org/dc/elements/1.1/title",
        "http://purl.org/rss/1.0/title",
    )
)
_TOPICS = frozenset(
    f"<{name}>"
    for name in (
        "http://xmlns.com/foaf/0.1/primaryTopic",
        "http://schema.org/mainEntity",
        "https://schema.org/mainEntity",
    )
)
_TITLING = _NAMES | _TOPICS
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_ESCAPED = re.compile(r"\\(.)")
_PLAIN = {'"': '"', "\\": "\\"}


def transform(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    settings: Settings = _DEFAULTS,
    loader: Loader | None = None,
    syntaxes: Registry = SYNTAXES,
    answers: tuple[ServiceAnswer, ...] | None = None,
    detected: Detected | None = None,
) -> Transformed:
    """Read what `body`, found at `url`, says. Never raises on bad content: defects are in `findings`. Raises
    `UsageError` for a body that is no bytes and a URL that is not absolute.

    `headers` are those of the response, names in lower case; `X-Robots-Tag` counts and, without `content_type`,
    `Content-Type`. `loader` stands in for the network if a syntax needs another document, such as a JSON-LD context.
    `answers` of services; None = not asked yet. If `syntaxes` holds a service that takes the document, this raises
    `ServicesNeeded` then, before anything else is done. `detected`: what the body is, if that is known.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise UsageError(
            f"the body is of type {type(body).__name__}, not bytes", hint='for a text: text.encode("utf-8")'
        )
    if ":" not in url:
        raise UsageError(
            f"the url {url!r} is not absolute", hint="give the address of the page: https://example.org/page"
        )
    context = _opened(body, url, content_type, headers, settings, detected)
    context.loader, context.answers = loader, answers or ()
    document = context.document
    context.findings += document.findings
    reading = syntaxes.reading(document.kind, settings.transform)
    if settings.service and answers is None and (needed := service_requests(context, reading.chosen)):
        raise ServicesNeeded(needed)
    reasons = document.reasons
    if not reading.chosen and document.kind != "empty":
        reasons = (*reasons, f"no syntax reads {document.kind}: nothing to state")
    if any(name == "x-robots-tag" for name, _ in context.headers):
        read_robots(context)  # `html` reads it again, with what the page's own `<meta>` says
    blanks: dict[str, int] = {}
    counts, own = _run_extractors(context, reading, blanks)
    if settings.transform.schemas and document.root:
        _guarded(context, "xml", validate)
    sink = context.sink
    triples = tuple(sink.triples)
    named = sink.named
    stated = [*triples, *[one[:3] for one in named]] if named else triples
    from_data = stated[own:] if counts and counts[0][0] in OWN_WORDS else stated
    if from_data:
        _add_data_links(context, from_data)
    checks = _checked(context, stated, counts, blanks)  # a page without data can have markup that is ignored
    for step in context.last_steps:  # after the checks, which look at the tree as it was parsed
        _guarded(context, "html", step)
    if not from_data and document.kind == "html" and settings.crawl.browser == "never":
        _note_shell(context)
    transformed = _transformed(context, reasons, counts, triples, stated, checks)
    transformed.__dict__["write_markdown"] = partial(
        markdown,
        body,
        url=url,
        content_type=content_type,
        headers=context.headers,
        settings=settings,
        detected=detected,
    )
    return transformed


def markdown(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    settings: Settings = _DEFAULTS,
    detected: Detected | None = None,
) -> str:
    """`body` as Markdown, its main part only; "" if it is neither a page nor a text. Arguments as for `transform`."""
    context = _opened(body, url, content_type, headers, settings, detected)
    if context.document.kind == "text":
        return markdown_of_text(context.text)
    if context.document.kind not in ("html", "xhtml"):
        return ""
    read(context)
    source = context.tree.raw_html  # to read the text may change the tree
    read_text(context)
    return markdown_of(parse_html(source), main_holders(context), context.base, INLINE)


def _opened(
    body: bytes,
    url: str,
    content_type: str | None,
    headers: Iterable[tuple[str, str]],
    settings: Settings,
    detected: Detected | None,
) -> Context:
    headers = tuple(headers)
    if content_type is None:
        content_type = next((value for name, value in headers if name == "content-type"), None)
    document, utf8 = detected or detect_body(body, url=url, content_type=content_type)
    if document.kind == "archive" and body.startswith(MAGIC):
        opened = unpack(body, url=url, content_type=content_type)
        if opened is not None:
            body, document, utf8 = opened.body, opened.document, None
    return Context(body, document, url=url, settings=settings, headers=headers, utf8=utf8)


def _run_extractors(context: Context, reading: Reading, blanks: dict[str, int]) -> tuple[list[tuple[str, int]], int]:
    """Run those that a document has signs of. Returns (syntax, quads) for each that stated any, and how many statements
    are of `OWN_WORDS`. `blanks` receives how many blank nodes there were before each."""
    counts: list[tuple[str, int]] = []
    own = before = 0
    sink = context.sink
    signs = context.signs
    try:
        reading.find_signs(context)
    except Exception:  # noqa: BLE001 - the tree cannot be parsed, and each extractor says so
        signs.update(reading.signs)
    for extractor in reading.run:
        if extractor.signs and signs.isdisjoint(extractor.signs):
            continue
        syntax = extractor.syntax
        blanks[syntax] = sink.blanks
        _guarded(context, syntax, extractor.run)
        after = len(sink)
        if after > before:
            counts.append((syntax, after - before))
            if syntax in OWN_WORDS:
                own += after - before
            before = after
    return counts, own


def _note_shell(context: Context) -> None:
    """Say why a page without data and almost without text seems to be empty. It is looked at twice only for that."""
    if len(context.facts.text) >= ENOUGH_TEXT or b"<script" not in context.body:
        return
    if reason := why_shell(context.body, little_text=1):  # a short page with a script is no defect
        context.find(
            "needs-scripts",
            f"read without its scripts: {reason}",
            severity="info",
            advice='crawl.browser = "auto" reads such pages with a browser',
        )


def _guarded(context: Context, syntax: str, run: Callable[[Context], None]) -> None:
    """The error boundary of the phase: any exception of an extractor becomes a finding."""
    try:
        run(context)
    except SyntaxInvalid as error:
        context.find(error.code, error.message, syntax=syntax, severity="error", line=error.line, column=error.column)
    except Exception as error:  # noqa: BLE001 - one extractor's defect must not cost the page its other syntaxes
        context.find(
            "extractor-failed",
            f"the {syntax} extractor failed: {type(error).__name__}: {str(error)[:200]}",
            syntax=syntax,
            severity="error",
            advice="please report the page; its other syntaxes were read",
        )


def _transformed(
    context: Context,
    reasons: tuple[str, ...],
    counts: list[tuple[str, int]],
    triples: tuple[Triple, ...],
    stated: Sequence[Triple],
    checks: PageChecks,
) -> Transformed:
    """`triples`: those without a graph of their own. `stated`: all statements, whatever their graph."""
    sink, facts, limits = context.sink, context.facts, context.settings.limits
    document = context.document
    if sink.overflow:
        most = sink_limits(limits, len(context.body))
        message = (
            f"more than {most.statements} statements, {most.characters >> 20} MiB of them or {most.long_terms} long "
            f"terms: {sink.overflow} left out"
        )
        context.find("too-many-quads", message, advice="publish the data in several documents")
    if sink.long_iris:
        message = f"{sink.long_iris} statements with an IRI of more than {limits.iri_chars} characters were left out"
        context.find("iri-too-long", message, advice="use shorter names; publish inline data as a document of its own")
    return Transformed(
        PageFacts(
            document.kind,
            document.media_type,
            document.charset,
            facts.language,
            facts.title or data_title(stated, context.url),
            facts.canonical,
            tuple(counts),
            facts.noindex,
            facts.nofollow,
            facts.noarchive,
        ),
        context.url,
        triples,
        tuple(sink.named),
        links=tuple(context.links[: context.most_links]),
        text=facts.text[: limits.text_chars],
        main_spans=facts.main_spans,
        headings=facts.headings,
        link_texts=facts.link_texts,
        image_texts=facts.image_texts,
        description=facts.description,
        types=_types(stated),
        mails=tuple(facts.mails),
        images=tuple(facts.images),
        findings=(*context.findings, *checks.findings),
        reasons=reasons,
        lastmods=tuple(facts.lastmods),
        rhythms=tuple(facts.rhythms),
        audit=checks.audit,
    )


def _checked(
    context: Context, stated: Sequence[Triple], counts: list[tuple[str, int]], blanks: dict[str, int]
) -> PageChecks:
    """The checks behind a boundary of their own: they must not cost a page its data."""
    if not context.settings.audit.checks:
        return NOTHING
    try:
        return check_page(context, stated, counts, blanks)
    except QuadloomError as error:
        context.find("checks-failed", error.message, severity="error", advice=error.hint)
    except Exception as error:  # noqa: BLE001 - as for extractors
        context.find(
            "checks-failed",
            f"the checks of the data failed: {type(error).__name__}: {str(error)[:200]}",
            severity="error",
            advice="please report the page; its data was read",
        )
    return NOTHING


def _add_data_links(context: Context, stated: Sequence[Triple]) -> None:
    room = context.most_links - len(context.links)
    if room <= 0:
        return
    known = {link.target for link in context.links}
    nofollow = context.facts.nofollow
    for link in data_links(stated, context.url, room):
        if link.kind != "other" or link.target not in known:
            context.links.append(link if not nofollow else Link(link.target, link.source, link.kind, nofollow=True))


def _types(stated: Sequence[Triple]) -> tuple[str, ...]:
    found = dict.fromkeys([obj for _, predicate, obj in stated if predicate == TYPE])
    return tuple([obj[1:-1] for obj in found if obj[:1] == "<" and obj[:2] != "<<"])


def data_title(stated: Sequence[Triple], url: str) -> str:
    """What a document without a title of its own describes: the name of its main topic, else of a thing that is named
    after the document, else of the first thing that has a name. For files of data, which people find by that."""
    names: dict[str, str] = {}
    topic = ""
    for subject, predicate, value in stated[:_TITLED]:
        if predicate in _TITLING:
            if predicate in _TOPICS:
                topic = topic or value
            elif value[:1] == '"' and (found := _TEXT.match(value)):
                names.setdefault(subject, found.group(1))
    if not names:
        return ""
    own = next((subject for subject in names if subject == f"<{url}>" or subject.startswith(f"<{url}#")), "")
    name = names.get(topic) or names.get(own) or next(iter(names.values()))
    return _ESCAPED.sub(lambda match: _PLAIN.get(match.group(1), " "), name).strip()
