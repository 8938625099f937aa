"""JSON-LD 1.1 to N-Quads: `extract` for one document by the book, `read` and `read_scripts` for the crawl."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld import json as jsonld_json
from quadloom.documents.syntaxes.jsonld.context import ContextProcessor
from quadloom.documents.syntaxes.jsonld.expand import expand_document
from quadloom.documents.syntaxes.jsonld.fast import FastWalk, NotSimple
from quadloom.documents.syntaxes.jsonld.json import (
    JSONLD_TYPE,
    Json,
    is_jsonld_type,
    read_script,
    repaired_script,
    scripts_of,
)
from quadloom.documents.syntaxes.jsonld.loader import (
    ContextLoader,
    Fetch,
    is_html,
    is_json,
    with_folder,
)
from quadloom.documents.syntaxes.jsonld.rdf import Direction, RdfWriter
from quadloom.documents.syntaxes.jsonld.terms import (
    HAS_UNKNOWN_KEY,
    IN_TEMPLATE,
    SUSPICIOUS,
    TEMPLATE_TYPES,
    UNKNOWN_KEYWORD,
    ActiveContext,
    invalid,
)
from quadloom.documents.syntaxes.registry import Context, Loader
from quadloom.documents.syntaxes.sink import Sink
from quadloom.errors import SyntaxInvalid
from quadloom.model.finding import Finding
from quadloom.model.quads import Triple

_LOADS = 64  # of one document given to `extract`, whose caller chose the loader; the crawl allows fewer

_BUNDLED = ContextLoader()
_REPAIRS = {
    "bom": ("a byte order mark precedes the JSON", "save the template as UTF-8 without BOM"),
    "comment": ("HTML comment marks around the JSON", "remove <!-- and -->: a script needs no hiding"),
    "cdata": ("CDATA marks around the JSON", "remove them: they mean nothing in HTML"),
    "entities": ("the JSON is escaped as HTML", "write plain quotes: a script's text is not decoded"),
    "control-characters": ("raw line breaks or tabs in a JSON string", "write them as \\n and \\t"),
}


def extract(
    body: bytes,
    *,
    url: str,
    content_type: str = "application/ld+json",
    loader: Fetch | None = None,
    base: str | None = None,
    expand_context: Json | bytes = None,
    rdf_direction: Direction | None = None,
    processing_mode: str | None = None,
    extract_all_scripts: bool = False,
) -> bytes:
    """The dataset of a JSON-LD document, or of the scripts of an HTML page, as N-Quads with blank nodes.

    Follows the specification to the letter: of a page the first script counts, or the one that the fragment of `url`
    names, or all with `extract_all_scripts`; a page without a script is empty. `loader(url)` returns the bytes of a
    remote context or a `LoadedDocument`;
    without it only the bundled contexts are known. `expand_context` is a context as JSON (value or bytes) or its
    address. Raises `SyntaxInvalid` whose `code` is the specification's error code.
    """
    if is_html(content_type):
        document, base = _page(body, url, base, extract_all_scripts)
    elif is_json(content_type):
        document = jsonld_json.read(body)
    else:
        raise invalid("loading document failed", f"{content_type} is not a JSON type")
    contexts = ContextLoader(loader, loads=_LOADS)
    processor = ContextProcessor(contexts.load, mode=processing_mode or "json-ld-1.1")
    context = ActiveContext.initial(base if base is not None else url)
    if expand_context is not None:
        context = processor.process(context, _given_context(expand_context), url)
    expanded = expand_document(processor, context, document, base if base is not None else url)
    lines = _Lines()
    RdfWriter(lines.add, lines.blank, direction=rdf_direction).write(expanded)
    return lines.nquads()


def read(context: Context) -> None:
    """A JSON-LD document."""
    _write(context, [context.text], lambda _number: 1)


def read_scripts(context: Context) -> None:
    """JSON-LD in the scripts of a page, each a document of its own."""
    texts = script_texts(context)
    lines: list[int] = []

    def line_of(number: int) -> int:
        # To find the scripts in the source costs as much as reading them (70 µs), and few pages have a defect.
        if not lines:
            offsets = context.positions.scripts(JSONLD_TYPE)
            known = len(offsets) == len(texts)  # else the source is ambiguous
            lines.extend([context.positions.at(offset)[0] for offset in offsets] if known else [0] * len(texts))
        return lines[number]

    if texts:
        _write(context, texts, line_of)


def script_texts(context: Context) -> list[str]:
    """The texts of a page's JSON-LD scripts."""
    elements = context.all_elements
    scripts = elements.named("script")
    types = elements.values(scripts, ("type",))
    if not TEMPLATE_TYPES.isdisjoint([one for (one,) in types]):
        context.signs.add(IN_TEMPLATE)
    return [
        elements.text(script)
        for script, (media_type,) in zip(scripts, types, strict=True)
        if media_type == JSONLD_TYPE or (media_type and is_jsonld_type(media_type))
    ]


def _write(context: Context, texts: list[str], line_of: Callable[[int], int]) -> None:
    context.findings += write(
        texts, context.base, context.sink, line_of=line_of, loader=lambda: context_loader(context)
    )
    if any(map(HAS_UNKNOWN_KEY, texts)):
        context.signs.add(UNKNOWN_KEYWORD)
    if any('""' in text or "&" in text or '"type"' in text or '" "' in text for text in texts):
        context.signs.add(SUSPICIOUS)


def write(
    scripts: Iterable[str],
    base: str,
    sink: Sink,
    *,
    line_of: Callable[[int], int] = lambda _number: 0,
    loader: Callable[[], ContextLoader] = lambda: _BUNDLED,
) -> list[Finding]:
    """Write the statements of a page's JSON-LD scripts to `sink`; returns their defects.

    `scripts` are the texts of all `script[type="application/ld+json"]`. `line_of` returns the line of the page on which
    a script begins, by its number (0 if unknown), and is called only for those with a defect; `loader` only for
    contexts that are not known. Each script is a document of its own: a broken one writes nothing and does not affect
    the others. All statements go to the page's graph, those of named graphs too.
    """
    processor = page_processor(loader)
    findings: list[Finding] = []
    for number, text in enumerate(scripts):
        try:
            value, repairs = repaired_script(text)
            for repair in repairs:
                message, advice = _REPAIRS[repair]
                line = line_of(number)
                findings.append(Finding(f"jsonld-{repair}", message, line=line, advice=advice, syntax="jsonld"))
            statements, dropped, spaced = _statements(value, base, sink, processor)
        except SyntaxInvalid as error:
            findings.append(_finding(error, line_of(number)))
            continue
        for subject, predicate, obj in statements:
            sink.add(subject, predicate, obj)
        if dropped:
            message = f"{dropped} statements left out: an IRI or language tag in them is not well-formed"
            findings.append(Finding(code="jsonld-term", message=message, line=line_of(number), syntax="jsonld"))
        if spaced:
            message = f"{spaced} addresses have spaces, which are read as %20"
            findings.append(
                Finding("jsonld-spaces", message, line=line_of(number), syntax="jsonld", advice="write %20")
            )
        if not statements and not dropped:
            message = "a JSON-LD script says nothing"
            advice = "give it an @context, such as https://schema.org, and properties from that vocabulary"
            line = line_of(number)
            findings.append(Finding(code="jsonld-empty", message=message, line=line, advice=advice, syntax="jsonld"))
    return findings


def page_processor(loader: Callable[[], ContextLoader]) -> ContextProcessor:
    """The context processor of one page. `loader` is called if a context is not known; its limits are for the page."""

    @cache
    def started() -> ContextLoader:
        contexts = loader()
        contexts.start()
        return contexts

    return ContextProcessor(lambda url: started().load(url))


def context_loader(context: Context) -> ContextLoader:
    """Loads contexts as the settings allow."""
    transform, limits = context.settings.transform, context.settings.limits
    fetch = with_folder(transform.contexts_folder, None if transform.contexts == "known" else context.loader)
    return _bounded(fetch, limits.context_loads, limits.context_bytes) if fetch is not None else _BUNDLED


@lru_cache(maxsize=4)
def _bounded(fetch: Loader, loads: int, max_bytes: int) -> ContextLoader:
    """One loader per way of fetching, so that its cache serves all pages of a worker."""
    return ContextLoader(fetch, loads=loads, max_bytes=max_bytes)


class _Statements(NamedTuple):
    """`dropped`: statements with a term that is not well-formed; `spaced`: addresses in which spaces were replaced."""

    statements: list[Triple]
    dropped: int
    spaced: int


def _statements(value: Json, base: str, sink: Sink, processor: ContextProcessor) -> _Statements:
    """Of one document, by the fast path or, if that gives up, by the complete one."""
    walk = FastWalk(processor, sink.blank, base)
    try:
        walk.document(value)
        return _Statements(walk.statements, walk.dropped, walk.spaced)
    except NotSimple:
        statements: list[Triple] = []
        writer = RdfWriter(lambda s, p, o, _graph: statements.append((s, p, o)), sink.blank, spaces=base)
        writer.write(expand_document(processor, ActiveContext.initial(base), value, base))
        return _Statements(statements, writer.dropped, writer.spaced)


def _finding(error: SyntaxInvalid, line: int) -> Finding:
    """The place of an error in the page. The first line of a script starts somewhere within a line of the page."""
    return Finding(
        code="jsonld-invalid",
        message=error.message,
        severity="error",
        line=line + error.line - 1 if line and error.line else line,
        column=error.column if error.line > 1 else 0,
        syntax="jsonld",
    )


def _page(body: bytes, url: str, base: str | None, every: bool) -> tuple[Json, str]:
    """The JSON of a page's scripts and the page's base address."""
    address, _, fragment = url.partition("#")
    found = scripts_of(body, fragment)
    page_base = jsonld_iri.resolve(base if base is not None else address, found.base)
    if not every:
        return (read_script(found.texts[0]) if found.texts else []), page_base
    documents: list[Json] = []
    for text in found.texts:
        value = read_script(text)
        documents.extend(value if isinstance(value, list) else [value])
    return documents, page_base


def _given_context(context: Json | bytes) -> Json:
    if isinstance(context, bytes) or (isinstance(context, str) and context.lstrip()[:1] in ("{", "[")):
        context = jsonld_json.read(context if isinstance(context, bytes) else context.encode())
    if isinstance(context, dict) and "@context" in context:
        return context["@context"]
    return context


class _Lines:
    """Distinct statements in the order of the document, each with its graph."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}
        self._blanks = 0

    def add(self, subject: str, predicate: str, obj: str, graph: str) -> None:
        self._lines[f"{subject} {predicate} {obj} {graph} ." if graph else f"{subject} {predicate} {obj} ."] = None

    def blank(self) -> str:
        self._blanks += 1
        return f"_:b{self._blanks - 1}"

    def nquads(self) -> bytes:
        return "".join(f"{line}\n" for line in self._lines).encode("utf-8", "replace")
