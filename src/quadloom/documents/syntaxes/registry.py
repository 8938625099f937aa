"""Which extractors read which kind of document, and what they share while they do.

An extractor is a function over one `Context`. It reads the tree that was parsed once for all, and writes to the sink,
the links, the facts and the findings. A new syntax is one line in the table of `quadloom.documents.syntaxes.installed`.

`Positions` finds lines and columns for findings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate

import msgspec
from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.syntaxes.charset import charset_of, decode, utf8
from quadloom.documents.syntaxes.html.elements import Elements, elements_of, nodes_named
from quadloom.documents.syntaxes.html.tree import parse_html, tame
from quadloom.documents.syntaxes.html.xhtml import as_xhtml
from quadloom.documents.syntaxes.sink import Sink, sink_limits
from quadloom.documents.syntaxes.sniffing import xml_root
from quadloom.documents.syntaxes.xml.document_type import document_type, parse_xml
from quadloom.model.document import Document, Kind
from quadloom.model.finding import Finding, Severity
from quadloom.model.link import Link
from quadloom.model.service import ServiceAnswer
from quadloom.settings import Settings

Loader = Callable[[str], bytes]
"""Returns the bytes at a URL (a JSON-LD context, a transformation) or raises `SyntaxInvalid`. Its maker limits time and
size."""

_DEFAULTS = Settings()


class Facts:
    """What a page says about itself, collected by the extractors. The first writer of a text wins."""

    __slots__ = (
        "canonical",
        "description",
        "headings",
        "image_texts",
        "images",
        "language",
        "lastmods",
        "link_texts",
        "mails",
        "metas",
        "noarchive",
        "nofollow",
        "noindex",
        "rhythms",
        "text",
        "title",
    )

    def __init__(self) -> None:
        self.title = ""
        self.description = ""
        self.language = ""
        self.canonical = ""
        self.text = ""
        self.headings = ""  # of the main part, one a line; so are the texts of links and images
        self.link_texts = ""
        self.image_texts = ""
        self.mails: dict[str, None] = {}
        self.images: dict[str, None] = {}
        self.metas: list[tuple[str, str]] = []  # (name or property in lower case, content), in document order
        self.noindex = False
        self.nofollow = False
        self.noarchive = False
        self.lastmods: list[tuple[str, float]] = []
        self.rhythms: list[tuple[str, float]] = []  # (URL, stated seconds between changes)


class Context:
    """One document under transformation. Trees are made on first use and shared; extractors must not change them."""

    __slots__ = (
        "_elements",
        "_positions",
        "_root",
        "_utf8",
        "_xhtml",
        "answers",
        "base",
        "body",
        "document",
        "facts",
        "findings",
        "headers",
        "last_steps",
        "link_texts",
        "links",
        "loader",
        "settings",
        "shared",
        "signs",
        "sink",
        "url",
    )

    def __init__(
        self,
        body: bytes,
        document: Document,
        *,
        url: str,
        settings: Settings,
        headers: Iterable[tuple[str, str]] = (),
        loader: Loader | None = None,
        utf8: bytes | None = None,
        answers: tuple[ServiceAnswer, ...] = (),
    ) -> None:
        self.answers = answers  # of the services that were asked about this document
        self.body = body
        self.document = document
        self.url = url
        self.base = url  # the `html` extractor, which runs first, replaces it by <base href>
        self.settings = settings
        self.headers = tuple(headers)
        self.loader = loader
        self.sink = Sink(sink_limits(settings.limits, len(body)), url)
        self.links: list[Link] = []
        self.link_texts: list[str] = []  # of the `<a>` elements, in document order; empty if it is no link
        self.last_steps: list[Callable[[Context], None]] = []  # run after all extractors: they may change the tree
        self.findings: list[Finding] = []
        self.facts = Facts()
        self.signs: frozenset[bytes] = frozenset()  # patterns of the extractors' signs that the body matches
        self.shared: dict[str, object] = {}  # by syntax: what its extractor keeps for those that find its places
        self._utf8 = utf8
        self._elements: Elements | None = None
        self._root: etree._Element | None = None
        self._xhtml: etree._Element | None = None
        self._positions: Positions | None = None

    @classmethod
    def standalone(
        cls, body: bytes, kind: Kind, *, url: str, settings: Settings = _DEFAULTS, loader: Loader | None = None
    ) -> Context:
        """A context outside the pipeline, for a document whose kind the caller knows: what each syntax's `extract`
        reads."""
        charset = charset_of(body, xml=kind not in ("html", "text"))
        source = utf8(body, charset.name, is_utf8=charset.is_utf8)
        root = xml_root(source) if kind != "html" else None
        document = Document(kind, charset=charset.name, root=root.name if root is not None else "")
        return cls(body, document, url=url, settings=settings, loader=loader, utf8=source)

    @property
    def utf8(self) -> bytes:
        """The body in UTF-8 without byte order mark."""
        if self._utf8 is None:
            self._utf8 = utf8(self.body, self.document.charset)
        return self._utf8

    @property
    def text(self) -> str:
        """The body as characters."""
        return decode(self.body, self.document.charset)

    @property
    def tree(self) -> LexborHTMLParser:
        """The HTML tree. For XHTML it is made from the XML tree, so that `<script/>` closes itself as it should."""
        return self.all_elements.tree

    @property
    def all_elements(self) -> Elements:
        """The elements of the HTML tree by number, for questions about many of them at once."""
        if self._elements is None:
            if self.document.kind == "xhtml":
                source: bytes = etree.tostring(self.root, method="html", encoding="utf-8")
            else:
                source = self.utf8
            source, findings = tame(source)
            self.findings += findings
            self._elements = elements_of(parse_html(source))
        return self._elements

    def elements(self, tag: str) -> list[LexborNode]:
        """Elements of one name, in document order, as nodes of the parser."""
        return nodes_named(self.tree, tag)

    @property
    def root(self) -> etree._Element:
        """The root of the XML tree. Raises `SyntaxInvalid` with line and column if the body is not well-formed."""
        if self._root is None:
            self._root = parse_xml(self.utf8)
            self._note_external_entities()
        return self._root

    def _note_external_entities(self) -> None:
        """Entities of other documents are not read; the text lacks what they stand for."""
        if b"<!ENTITY" not in self.utf8:
            return
        missing = [one for one in document_type(self.utf8).entities if not one.is_parameter]
        if missing:
            self.find(
                "xml-external-entity",
                "not read: " + ", ".join(f"&{one.name}; ({one.system})" for one in missing),
                syntax="xml",
                advice="put the text into the document itself; external entities are not loaded",
            )

    @property
    def xhtml(self) -> etree._Element:
        """The root of the HTML tree as XHTML, whether or not the page is well-formed."""
        if self._xhtml is None:
            self._xhtml = as_xhtml(self.tree)
        return self._xhtml

    @property
    def positions(self) -> Positions:
        """Finds line and column of things in the source, for findings."""
        if self._positions is None:
            self._positions = Positions(self.utf8)
        return self._positions

    def find(
        self,
        code: str,
        message: str,
        *,
        syntax: str = "",
        severity: Severity = "warning",
        line: int = 0,
        column: int = 0,
        advice: str = "",
    ) -> None:
        """Record a defect of the document."""
        self.findings.append(Finding(code, message, severity, "transform", line, column, advice, syntax))


class Extractor(msgspec.Struct, frozen=True):
    """`run` reads one `syntax`. If there are `signs` (patterns in RE2 syntax over the body as UTF-8), it is called only
    if one of them matches; `Context.signs` holds those that did, for all extractors of the page. `service`: the number
    of the service whose answer it writes, None for documents that the service does not take. `by_kind`: its syntax has
    several formats, each a kind of its own, whose names choose it for that kind alone."""

    syntax: str
    run: Callable[[Context], None]
    signs: tuple[bytes, ...] = ()
    service: Callable[[Document], int | None] | None = None
    by_kind: bool = False


class Registry:
    """Extractors by kind, in the order in which they run. Immutable: `adding` returns a new registry."""

    __slots__ = ("_table",)

    def __init__(self, table: dict[Kind, tuple[Extractor, ...]]) -> None:
        self._table = table

    def extractors(self, kind: Kind, chosen: Iterable[str] = ()) -> tuple[Extractor, ...]:
        """Those for `kind`; with `chosen` (some of `names`), only those syntaxes and formats, and always `html`, which
        finds links and text."""
        all_of_kind = self._table.get(kind, ())
        names = frozenset(chosen)
        if not names:
            return all_of_kind
        return tuple(
            one for one in all_of_kind if one.syntax in names or one.syntax == "html" or (one.by_kind and kind in names)
        )

    def adding(self, extractor: Extractor, kinds: Iterable[Kind]) -> Registry:
        """This registry with one more extractor, which runs last for the given kinds. Plug-ins are added here."""
        table = dict(self._table)
        for kind in kinds:
            table[kind] = (*table.get(kind, ()), extractor)
        return Registry(table)

    def kinds(self, syntax: str) -> tuple[Kind, ...]:
        """The kinds of documents that a syntax is read from."""
        return tuple(kind for kind, row in self._table.items() if any(one.syntax == syntax for one in row))

    @property
    def syntaxes(self) -> tuple[str, ...]:
        """Names of all syntaxes, in the order of the table."""
        return tuple(dict.fromkeys(extractor.syntax for row in self._table.values() for extractor in row))

    @property
    def names(self) -> tuple[str, ...]:
        """What `transform.syntaxes` may hold: names of syntaxes, and of formats that can be chosen alone."""
        formats = [kind for kind, row in self._table.items() if any(one.by_kind for one in row)]
        return (*self.syntaxes, *formats)


# A tag that is not closed ends with the source, so that what looks like a tag within it is not tried again.
_SCRIPT = re.compile(rb"<script(?=[\s/>])((?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+)(?:>|\Z)", re.I)
_SCRIPT_END = re.compile(rb"</script", re.I)


class Positions:
    """Line and column of things in one source, given as UTF-8. Both count from 1; columns count characters.

    HTML trees carry no positions, and keeping them would slow every parse for the few pages that have a defect. So
    places are found afterwards: the source is searched for what the tree says, in document order.
    """

    __slots__ = ("_is_plain", "_known", "_lines", "_source")

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._is_plain: bool | None = None  # no line ends with a carriage return
        self._known = (0, 1)  # the beginning of a line and its number: places are mostly asked for in order
        self._lines: list[int] | None = None

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset."""
        if self._lines is None:
            if self._is_plain is None:
                self._is_plain = b"\r" not in self._source
            if self._is_plain:
                begin = self._source.rfind(b"\n", 0, offset) + 1
                column = len(self._source[begin:offset].decode("utf-8", "replace")) + 1
                known, line = self._known if self._known[0] <= begin else (0, 1)
                self._known = (begin, line + self._source.count(b"\n", known, begin))
                return self._known[1], column
            self._lines = [0, *accumulate(map(len, self._source.splitlines(keepends=True)))]
            if not self._source.endswith((b"\n", b"\r")):
                self._lines.pop()  # the end of the source begins no line
        line = bisect_right(self._lines, offset)
        return line, len(self._source[self._lines[line - 1] : offset].decode("utf-8", "replace")) + 1

    def scripts(self, media_type: str) -> list[int]:
        """Byte offsets of the contents of `<script type=media_type>` blocks, in document order."""
        wanted = media_type.lower().encode()
        offsets = []
        at = 0
        while match := _SCRIPT.search(self._source, at):
            at = match.end()
            if wanted in match.group(1).lower():
                offsets.append(at)
            closed = _SCRIPT_END.search(self._source, at)
            at = closed.end() if closed else len(self._source)
        return offsets

    def inside(self, offset: int, line: int, column: int) -> tuple[int, int]:
        """SourcePlace in the page of a place (from 1) within the block that begins at `offset`."""
        first, indent = self.at(offset)
        return (first, indent + column - 1) if line <= 1 else (first + line - 1, column)
