"""XSLT 1.0 in a sandbox: a stylesheet sees the document, the page's URL and three pure functions, nothing else.

Measured on lxml 6: by default `document()` reads files and `exsl:document` writes them. `XSLTAccessControl.DENY_ALL`
stops both, but not `xsl:import` and `xsl:include`, which are resolved when the stylesheet is compiled. So they are
found and loaded before that, by `Imports` alone, and a resolver on the parser refuses every other name. EXSLT's regular
expressions run on Python's `re`, which can take for ever, so they are off. No library setting limits time and memory
(2^60 calls fit into a kilobyte), so transformations run in disposable processes only, which the crawl and `inspect`
kill at a deadline.

Quadloom's own stylesheets are in `stylesheets/`. `opml`, `opensearch` and `svg` are how these kinds are read. `rss`,
`atom`, `sitemap` and `xhtml` say in XSLT what native code does faster; they are patterns for stylesheets of users, and
stand in for GRDDL's well-known transformations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

from lxml import etree

from quadloom.documents.syntaxes.feeds.writing import parse_date, plain
from quadloom.documents.syntaxes.guards import check_xml
from quadloom.documents.syntaxes.rdf import files as rdf_files
from quadloom.documents.syntaxes.rdf.files import RdfKind
from quadloom.documents.syntaxes.rdf.links import REFERENCES
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import RDF, join
from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Kind
from quadloom.model.link import Link
from quadloom.model.url import resolve

MAX_STYLESHEET_BYTES = 256 * 1024
MAX_RESULT_BYTES = 32 * 1024 * 1024
FUNCTIONS = "urn:quadloom:xslt"
"""Namespace of the functions a stylesheet may call: `resolve(reference, base)`, `date-time(text)`, `plain(html)`."""

_XSL = "http://www.w3.org/1999/XSL/Transform"
_STRING = etree.XPath("string()")
_DENY_ALL: etree.XSLTAccessControl = getattr(etree.XSLTAccessControl, "DENY_ALL")  # noqa: B009 - not in the stubs
_RDF_ROOT = f"{{{RDF}}}RDF"
_TEXT_KINDS: dict[str, RdfKind] = {
    "": "turtle", "text/plain": "turtle", "text/turtle": "turtle", "application/n-triples": "ntriples",
    "application/n-quads": "nquads", "application/trig": "trig",
}  # fmt: skip


class Imports(NamedTuple):
    """What a stylesheet may import or include.

    `resolve(base, reference)` returns an absolute name, `load` its bytes. Both raise `SyntaxInvalid` for what may not
    be read.
    """

    resolve: Callable[[str, str], str]
    load: Callable[[str], bytes]
    most: int = 5
    depth: int = 3


def _refuse(_base: str, reference: str) -> str:
    raise SyntaxInvalid(f"a stylesheet may not read {reference[:200]!r}", code="xslt-forbidden")


NO_IMPORTS = Imports(_refuse, lambda _name: b"")


class StylesheetOutput(NamedTuple):
    """What a stylesheet wrote, and the RDF syntax it is in."""

    body: bytes
    kind: RdfKind


class Stylesheet:
    """A compiled stylesheet. Make it with `compiled`."""

    __slots__ = ("_kind", "_text", "_transform", "imports", "name")

    def __init__(
        self, name: str, transform: etree.XSLT, *, text: bool, kind: RdfKind, imports: tuple[str, ...]
    ) -> None:
        self.name = name
        self.imports = imports  # absolute names of what it imports or includes, at any depth
        self._transform = transform
        self._text = text
        self._kind = kind

    def apply(self, root: etree._Element, *, url: str) -> StylesheetOutput:
        """Transform a document; its URL is the parameter `url`. Raises `SyntaxInvalid` if that fails."""
        try:
            result = self._transform(root, url=etree.XSLT.strparam(url))
            body = bytes(result)
        except (etree.XSLTError, etree.XPathError, ValueError, TypeError) as error:
            raise _invalid(self.name, error, "xslt-failed") from None
        if len(body) > MAX_RESULT_BYTES:
            raise SyntaxInvalid(
                f"{self.name}: the result has more than {MAX_RESULT_BYTES} bytes", code="xslt-result-too-large"
            )
        if self._text or not body.strip():
            return StylesheetOutput(body, self._kind)
        top = result.getroot()
        if top is None or top.tag != _RDF_ROOT:
            raise SyntaxInvalid(
                f"{self.name}: the result is not RDF/XML but <{getattr(top, 'tag', 'text')}>", code="xslt-not-rdf"
            )
        return StylesheetOutput(body, "rdfxml")

    def state(self, context: Context, root: etree._Element, *, syntax: str) -> int:
        """Apply to a document and keep the statements; returns their number. Defects become findings."""
        if b"<!ENTITY" in context.utf8:
            check_xml(context.utf8)  # XPath's string() expands entities without the parser's limit
        try:
            output = self.apply(root, url=context.url)
        except SyntaxInvalid as error:
            context.find(
                error.code,
                error.message,
                syntax=syntax,
                severity="error",
                line=error.line,
                column=error.column,
                advice="the other syntaxes of the page were read; correct the stylesheet",
            )
            return 0
        return state(context, output.body, output.kind, base=context.base, syntax=syntax)


def state(context: Context, body: bytes, kind: RdfKind, *, base: str, syntax: str) -> int:
    """Keep the statements of a generated RDF document; returns their number."""
    if not body.strip():
        return 0
    found = rdf_files.read(body, kind=kind, url=base, limit=context.settings.limits.quads_per_page)
    before = len(context.sink)
    context.sink.pour(with_own_blank_nodes(found.nquads))
    for finding in found.findings:
        context.find(finding.code, f"result of {syntax}: {finding.message}", syntax=syntax, severity=finding.severity)
    return len(context.sink) - before


def compiled(source: bytes, *, name: str, imports: Imports = NO_IMPORTS) -> Stylesheet:
    """Compile a stylesheet, or take it from the cache. `name` is its absolute name, if it imports others.

    Raises `SyntaxInvalid`, also for too many imports, too deep ones, and circles.
    """
    found: dict[str, bytes] = {}
    source = _collect_imports(source, name, imports, found, (name,))
    return _compiled(source, name, tuple(sorted(found.items())))


@lru_cache(maxsize=64)
def _compiled(source: bytes, name: str, imports: tuple[tuple[str, bytes], ...]) -> Stylesheet:
    tree = _parse(source, name, dict(imports))
    output = tree.find(f"{{{_XSL}}}output")
    method = output.get("method", "") if output is not None else ""
    media_type = output.get("media-type", "") if output is not None else ""
    try:
        transform = etree.XSLT(tree, extensions=_EXTENSIONS, regexp=False, access_control=_DENY_ALL)
    except (etree.XSLTError, etree.XMLSyntaxError, ValueError) as error:
        raise _invalid(name, error, "xslt-invalid") from None
    return Stylesheet(
        name,
        transform,
        text=method == "text",
        kind=_TEXT_KINDS.get(media_type.lower(), "turtle"),
        imports=tuple(url for url, _ in imports),
    )


class _Known(etree.Resolver):
    """Resolves only what was loaded before. Every other reference ends the compilation."""

    def __init__(self, known: Mapping[str, bytes]) -> None:
        super().__init__()
        self._known = known

    def resolve(self, url: str, pubid: str | None, context: object) -> object:  # type: ignore[override]  # as called
        found = self._known.get(url or "")
        if found is None:
            raise SyntaxInvalid(f"a stylesheet may not read {str(url)[:200]!r}", code="xslt-forbidden")
        return self.resolve_string(found, context, base_url=url)


def _parse(source: bytes, name: str, imports: Mapping[str, bytes], *, whole: bool = False) -> etree._Element:
    """`whole` keeps comments, so that what is written from the tree has its lines where they were."""
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=not whole,
        remove_pis=not whole,
    )
    parser.resolvers.add(_Known(imports))
    check_xml(source)
    try:
        root = etree.fromstring(source, parser, base_url=name)
    except etree.XMLSyntaxError as error:
        raise _invalid(name, error, "xslt-invalid") from None
    if root is None:
        raise SyntaxInvalid(f"{name}: no root element", code="xslt-invalid")
    return root


def _collect_imports(
    source: bytes, name: str, imports: Imports, found: dict[str, bytes], above: tuple[str, ...]
) -> bytes:
    """Load what a stylesheet imports into `found`. Returns it with absolute references: libxml2 would resolve relative
    ones by rules of its own."""
    _check_size(source, name)
    root = _parse(source, name, {}, whole=True)
    elements = list(root.iter(f"{{{_XSL}}}import", f"{{{_XSL}}}include"))
    if not elements:
        return source
    for element in elements:
        url = imports.resolve(name, element.get("href") or "")
        element.set("href", url)
        if url in above:
            raise SyntaxInvalid(f"{name}: imports itself, through {url}", code="xslt-imports")
        if url in found:
            continue
        if len(above) > imports.depth or len(found) >= imports.most:
            raise SyntaxInvalid(
                f"{name}: more than {imports.most} imports, or deeper than {imports.depth}", code="xslt-imports"
            )
        found[url] = b""  # it counts from here on
        found[url] = _collect_imports(imports.load(url), url, imports, found, (*above, url))
    return etree.tostring(root.getroottree(), encoding="utf-8")


def _check_size(source: bytes, name: str) -> None:
    if len(source) > MAX_STYLESHEET_BYTES:
        raise SyntaxInvalid(f"{name}: larger than {MAX_STYLESHEET_BYTES} bytes", code="xslt-too-large")


def with_own_blank_nodes(nquads: bytes) -> bytes:
    """Rename blank nodes: a stylesheet may write `_:b0`, as the page's own extractors do."""
    if b"_:b" not in nquads:
        return nquads
    import pyoxigraph as ox

    parsed = ox.parse(nquads, ox.RdfFormat.N_QUADS, rename_blank_nodes=True, lenient=True)
    return ox.serialize(parsed, format=ox.RdfFormat.N_QUADS) or b""


def _invalid(name: str, error: Exception, code: str) -> SyntaxInvalid:
    log = getattr(error, "error_log", None)
    entry = log.last_error if log is not None and len(log) else None
    message = (entry.message if entry is not None else str(error)) or type(error).__name__
    line = entry.line if entry is not None else 0
    return SyntaxInvalid(f"{name}: {message[:300]}", code=code, line=max(line, 0))


def _resolve(_context: object, reference: object, base: object) -> str:
    text = _string(reference)
    return join(_string(base), text) if text else ""


def _date_time(_context: object, text: object) -> str:
    found = parse_date(_string(text))
    return found.text if found else ""


def _plain(_context: object, text: object) -> str:
    return plain(_string(text))


def _string(value: object) -> str:
    """XPath's string value of an argument: a text, a number, or the first of a set of nodes."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, etree._Element):
        return str(_STRING(value)).strip()
    return str(value).strip()


_EXTENSIONS: dict[tuple[str, str], Callable[..., str]] = {
    (FUNCTIONS, "resolve"): _resolve,
    (FUNCTIONS, "date-time"): _date_time,
    (FUNCTIONS, "plain"): _plain,
}


NAMES = ("atom", "opensearch", "opml", "rss", "sitemap", "svg", "xhtml")
_OF_KIND: dict[Kind, str] = {"opensearch": "opensearch", "svg": "svg"}


@lru_cache(maxsize=len(NAMES))
def bundled(name: str) -> Stylesheet:
    """One of Quadloom's own stylesheets, compiled."""
    source = files("quadloom.documents.syntaxes.xml").joinpath("stylesheets", f"{name}.xsl").read_bytes()
    return compiled(source, name=f"{name}.xsl")


def extract(body: bytes, *, url: str, kind: Literal["opensearch", "svg"]) -> bytes:
    """N-Triples of one document by the stylesheet that comes with its kind."""
    context = Context.standalone(body, kind, url=url)
    read(context)
    return context.sink.nquads()


def read(context: Context) -> None:
    """State a document by the stylesheet that comes with its kind."""
    name = _OF_KIND.get(context.document.kind)
    if name is None:
        return
    bundled(name).state(context, context.root, syntax=context.document.kind)
    for statement in context.sink.statements():
        _, predicate, value = statement.split(" ", 2)
        if predicate == REFERENCES:
            target = resolve(value[1:-1])
            if target:
                context.links.append(Link(target, context.url))
