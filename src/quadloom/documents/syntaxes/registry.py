"""Which extractors read which kind of document, and what they share while they do.

An extractor is a function over one `Context`. It reads the tree that was parsed once for all, and writes to the sink,
the links, the facts and the findings. A new syntax is one line in the table of `quadloom.documents.syntaxes.installed`.

`Positions` finds lines and columns for findings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import accumulate

import msgspec
from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.syntaxes.charset import charset_of, decode, utf8
from quadloom.documents.syntaxes.html import elements as html_elements
from quadloom.documents.syntaxes.html.elements import Elements, nodes_named
from quadloom.documents.syntaxes.html.tree import parse_html, tame
from quadloom.documents.syntaxes.html.xhtml import as_xhtml
from quadloom.documents.syntaxes.signs import signs_in
from quadloom.documents.syntaxes.sink import Sink, sink_limits
from quadloom.documents.syntaxes.sniffing import xml_root
from quadloom.documents.syntaxes.xml.document_type import document_type, parse_xml
from quadloom.model.document import Document, Kind
from quadloom.model.finding import Finding, Severity
from quadloom.model.link import Link
from quadloom.model.service import ServiceAnswer
from quadloom.settings import Settings, TransformSettings

Loader = Callable[[str], bytes]
"""Returns the bytes at a URL (a JSON-LD context, a transformation) or raises `SyntaxInvalid`. Its maker limits time and
size."""

_DEFAULTS = Settings()
_MAX_READINGS = 64  # of one registry


class Facts(msgspec.Struct):
    """What a page says about itself, collected by the extractors. The first writer of a text wins."""

    title: str = ""
    description: str = ""
    language: str = ""
    canonical: str = ""
    text: str = ""
    main_spans: tuple[int, ...] = ()  # of `text`: see `Transformed`
    headings: str = ""  # of the main part, one a line; so are the texts of links and images
    link_texts: str = ""
    image_texts: str = ""
    mails: dict[str, None] = {}
    images: dict[str, None] = {}
    metas: list[tuple[str, str]] = []  # (name or property in lower case, content), in document order
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    lastmods: list[tuple[str, float]] = []
    rhythms: list[tuple[str, float]] = []  # (URL, stated seconds between changes)


class Context:
    """One document under transformation. Trees are parsed on first use and shared; extractors must not change them."""

    __slots__ = (
        "__dict__", "answers", "base", "body", "document", "facts", "findings", "headers", "last_steps", "link_texts",
        "links", "loader", "most_links", "settings", "shared", "signs", "sink", "url",
    )  # fmt: skip

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
        self.most_links = settings.limits.links_per_page  # sitemaps raise it
        self.link_texts: list[str] = []  # of the `<a>` elements, in document order; empty if it is no link
        self.last_steps: list[Callable[[Context], None]] = []  # run after all extractors: they may change the tree
        self.findings: list[Finding] = []
        self.facts = Facts()
        self.signs: set[Sign] = set()  # of the document, among those that extractors and checks ask for
        self.shared: dict[str, object] = {}  # by syntax: what its extractor keeps for those that find its places
        if utf8 is not None:
            self.utf8 = utf8

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

    @cached_property
    def utf8(self) -> bytes:
        """The body in UTF-8 without byte order mark."""
        return utf8(self.body, self.document.charset)

    @property
    def text(self) -> str:
        """The body as characters."""
        return decode(self.body, self.document.charset)

    @property
    def tree(self) -> LexborHTMLParser:
        """The HTML tree. For XHTML it is made from the XML tree, so that `<script/>` closes itself as it should."""
        return self.all_elements.tree

    @cached_property
    def all_elements(self) -> Elements:
        """The elements of the HTML tree by number, for questions about many of them at once."""
        if self.document.kind == "xhtml":
            source: bytes = etree.tostring(self.root, method="html", encoding="utf-8")
        else:
            source = self.utf8
        source, findings = tame(source)
        self.findings += findings
        return html_elements.elements_of(parse_html(source))

    def elements(self, tag: str) -> list[LexborNode]:
        """Elements of one name, in document order, as nodes of the parser."""
        return nodes_named(self.tree, tag)

    @cached_property
    def root(self) -> etree._Element:
        """The root of the XML tree. Raises `SyntaxInvalid` with line and column if the body is not well-formed."""
        root = parse_xml(self.utf8)
        self._note_external_entities()
        return root

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

    @cached_property
    def xhtml(self) -> etree._Element:
        """The root of the HTML tree as XHTML, whether or not the page is well-formed."""
        return as_xhtml(self.tree)

    @cached_property
    def positions(self) -> Positions:
        """Finds line and column of things in the source, for findings."""
        return Positions(self.utf8)

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


Sign = bytes | str
"""What a document must have for a syntax to state anything: a pattern (RE2, over the body as UTF-8), or in the HTML
tree the name of an attribute (`xmlns:` stands for all names that begin so) or a `.word` of a class."""


class Extractor(msgspec.Struct, frozen=True):
    """`run` reads one `syntax`. With `signs`, it runs only if the document has one of them; with `is_wanted`, only if
    the settings want it. `service`: the number of the service whose answer it writes, None for documents that the
    service does not take. `by_kind`: its syntax has several formats, each a kind of its own, whose names choose it for
    that kind alone."""

    syntax: str
    run: Callable[[Context], None]
    signs: tuple[Sign, ...] = ()
    is_wanted: Callable[[TransformSettings], bool] | None = None
    service: Callable[[Document], int | None] | None = None
    by_kind: bool = False


class Reading:
    """How documents of one kind are read: the `chosen` extractors, and those of them that the settings `run`."""

    __slots__ = ("_attributes", "_classes", "_patterns", "chosen", "run", "signs")

    def __init__(self, chosen: tuple[Extractor, ...], settings: TransformSettings) -> None:
        self.chosen = chosen
        self.run = tuple(one for one in chosen if one.is_wanted is None or one.is_wanted(settings))
        self.signs = frozenset(sign for one in self.run for sign in one.signs)
        self._patterns = tuple(one for one in self.signs if isinstance(one, bytes))
        self._attributes = tuple(one for one in self.signs if isinstance(one, str) and one[0] != ".")
        self._classes = tuple(one[1:] for one in self.signs if isinstance(one, str) and one[0] == ".")

    def find_signs(self, context: Context) -> None:
        """Add to `context.signs` those that the document has: once for all extractors."""
        signs = context.signs
        if self._patterns:
            signs.update(signs_in(context.utf8, self._patterns))
        if self._attributes:
            signs.update(context.all_elements.carried(self._attributes))
        if self._classes:
            signs.update([f".{word}" for word in context.all_elements.words("class", self._classes)])


class Registry:
    """Extractors by kind, in the order in which they run. Immutable: `adding` returns a new registry."""

    __slots__ = ("_readings", "_table")

    def __init__(self, table: dict[Kind, tuple[Extractor, ...]]) -> None:
        self._table = table
        self._readings: dict[tuple[Kind, int], tuple[TransformSettings, Reading]] = {}

    def reading(self, kind: Kind, settings: TransformSettings) -> Reading:
        """How to read documents of this kind. With `transform.syntaxes` (some of `names`), only those syntaxes and
        formats, and always `html`, which finds links and text."""
        key = kind, id(settings)  # a worker has one object of settings for all its pages
        known = self._readings.get(key)
        if known is not None and known[0] is settings:
            return known[1]
        names = frozenset(settings.syntaxes)
        reading = Reading(
            tuple(
                one
                for one in self._table.get(kind, ())
                if not names or one.syntax in names or one.syntax == "html" or (one.by_kind and kind in names)
            ),
            settings,
        )
        if len(self._readings) >= _MAX_READINGS:
            self._readings.clear()
        self._readings[key] = settings, reading
        return reading

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
