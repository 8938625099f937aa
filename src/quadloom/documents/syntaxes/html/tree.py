"""HTML before and while it is parsed: what would make the parser slow is removed, and tag names become numbers.

The HTML standard's tree construction is not linear: an end tag looks up the whole stack of open elements, attributes of
one tag are compared with each other, and open formatting elements are copied into every new block. Measured with
lexbor: 100,000 nested `<div>` take 25 s, 80,000 attributes 26 s, and 64 KB of `<b id=1><p><b id=2><p>…` several GB.
Browsers limit the depth (Blink: 512); `tame` does the same before the parser sees the page.

A page needs many tags or one long tag for any of this, so most pages are only counted. The others are read once by a
tokenizer that follows the stack of open elements closely enough that a page cannot nest deeper than it believes.
"""

from __future__ import annotations

import re
from functools import cache

import re2
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.charset import charset_of, utf8
from quadloom.documents.syntaxes.terms import join
from quadloom.model.finding import Finding

SAFE_TAGS = 8_000  # at most 0.6 s of stack look-ups
SAFE_FORMATTED = 2_000  # below this number of tags, copies of formatting elements stay under 500,000
SAFE_BYTES = 64 * 1024  # at most 14,000 attributes: 0.7 s
MAX_DEPTH = 512
MAX_ATTRIBUTES = 500
MAX_FORMATTING = 16
MAX_ROOTS = 8  # further <html> and <body> tags only add attributes to the first

# The tokenizer's states as possessive groups: a scan is linear. A quote counts only after `name=`, as in the standard.
_ATTRIBUTES = rb"(?:[\s/]++|=?+[^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+)*+"
_COMMENT = rb"<!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?)"
_TAG = re.compile(_COMMENT + rb"|<(/?)([a-zA-Z][^\s/>\0]*+)(" + _ATTRIBUTES + rb")>?")
_ATTRIBUTE = re.compile(rb"=?+[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+")
# Automata read 2 ns a byte, however many tags there are; a tag at a time costs five times as much.
_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.log_errors = False  # a hostile page makes RE2 take a slower way, and that is no news
_FORMATTED = re2.compile(rb"(?i)<(?:[bisu]|big|code|em|font|nobr|small|strike|strong|tt)[\s/]", _BYTES)
# At least: without possessive groups, so that it may also match a tag that has fewer attributes. An attribute follows
# white space or a slash, or a value in quotes without either: `a="1"b="2"c d`; without a value it does not count then.
_MANY_ATTRIBUTES = (
    rb"<[a-zA-Z][^\s/>]*(?:[\s/]+=?[^\s/>=]*(?:\s*=\s*(?:(?:\"[^\"]*\"|'[^']*')[^\s/>=]*|[^\s>\"'][^\s>]*))?"
    rb"|=?[^\s/>=]*\s*=\s*(?:\"[^\"]*\"|'[^']*')[^\s/>=]*){%d}" % MAX_ATTRIBUTES
)
# `_LEAF`: an element that holds no other and is closed at once, as highlighted code has thousands of. Values stand in
# quotes and hold no brackets, so that what seems to be its end is its end.
_FORMATTING_TAG = re.compile(rb"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>]", re.IGNORECASE)
_LEAF = re.compile(
    rb"<(span|a|b|i|em|strong|code|tt|small|u|s|sup|sub|kbd|var|td|th|li|p|div|dt|dd|h[1-6]|option|label)"
    rb"(?:\s++[a-zA-Z:_-]++(?:=\"[^\"<>]*+\"|='[^'<>]*+')?+)*+>[^<]*+</\1>"
)

_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr keygen frame".split())
# Closed by the next of their kind or by their parent: they nest only as deep as the elements that are counted.
_IMPLIED = frozenset(
    b"p li dd dt option optgroup tr td th tbody thead tfoot colgroup caption rb rt rtc rp head".split()
)
_RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
_FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
_BARRIERS = frozenset(b"applet marquee object table template svg math foreignobject desc select".split())
_SPECIAL = _BARRIERS | frozenset(
    b"address article aside blockquote button center details dir div dl fieldset figcaption figure footer form "
    b"frameset h1 h2 h3 h4 h5 h6 header hgroup main menu nav ol pre section summary ul".split()
)
_FEW_RULES = frozenset((b"span", b"div"))  # the most frequent tags: nothing but their depth matters
# The same for the implementation of `_Reader` in C: a bit for each of these sets, in the order of its own list.
_SETS = (
    _VOID | _IMPLIED | {b"a"}, frozenset((b"html", b"body")), _RAW, _FORMATTING, _BARRIERS, _SPECIAL,
    frozenset((b"svg", b"math")), _FEW_RULES,
)  # fmt: skip
_RULES = {name: sum(1 << bit for bit, names in enumerate(_SETS) if name in names) for name in frozenset().union(*_SETS)}
_MOST = (MAX_DEPTH, MAX_ATTRIBUTES, MAX_FORMATTING, 2 * MAX_ROOTS)


def tame(source: bytes) -> tuple[bytes, list[Finding]]:
    """The source, unchanged if it is harmless; otherwise without the tags and attributes that go too far."""
    return (source, []) if _is_harmless(source) else _Reader(source).read()


def _is_harmless(source: bytes) -> bool:
    tags = _start_tags(source)
    if tags <= SAFE_FORMATTED and len(source) <= SAFE_BYTES:
        return True
    if _native_is_tame is not None and _native_is_tame(source, _RULES, *_MOST):
        return True
    if tags > SAFE_FORMATTED and (tags > SAFE_TAGS or _is_formatted(source)) and not _is_flat(source, tags):
        return False
    return len(source) <= SAFE_BYTES or _many_attributes().search(source) is None


@cache
def _many_attributes() -> re2._Regexp:
    """Compiled when the first page needs it: that takes as long as a dozen pages, and most crawls never do."""
    return re2.compile(_MANY_ATTRIBUTES, _BYTES)


def _counted(source: bytes) -> int:
    tags = source.count(b"<")
    return tags - source.count(b"</") if tags > SAFE_FORMATTED else tags


try:
    from quadloom.documents.native.elements import (
        start_tags as _start_tags,  # how many there are at most, at a tenth of the cost
    )
except ImportError:
    _start_tags = _counted


try:
    from quadloom.documents.native.texts import (
        is_tame as _native_is_tame,  # what `_Reader` would say, at a fiftieth of the cost
    )
except ImportError:  # it was not built: there is no compiler
    _native_is_tame = None  # type: ignore[assignment]


def _is_flat(source: bytes, tags: int) -> bool:
    """Whether nearly all elements are closed at once, as in tables and in highlighted code: then few can be open at
    the same time. A look-up in the stack for each tag stays below what `SAFE_TAGS` allows."""
    nested = _LEAF.sub(b"", _LEAF.sub(b"", source))
    if _start_tags(nested) * tags > SAFE_TAGS * SAFE_TAGS // 2:
        return False
    return len(_FORMATTING_TAG.findall(nested)) <= MAX_FORMATTING


def _is_formatted(source: bytes) -> bool:
    """Whether formatting elements with attributes are so many that they might be nested too deeply."""
    at = 0
    for _ in range(4 * MAX_FORMATTING + 1):
        match = _FORMATTED.search(source, at)
        if match is None:
            return False
        at = match.end()
    return True


class _Reader:
    __slots__ = ("_at", "_dropped", "_open", "_output", "_source", "_trimmed", "formatting", "roots")

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._output: list[bytes] = []
        self._at = 0  # everything before is in `_output`
        self._open: list[bytes] = []
        self._dropped = 0
        self._trimmed = 0
        self.formatting: list[bytes] = []
        self.roots = 0

    def read(self) -> tuple[bytes, list[Finding]]:
        source, stack = self._source, self._open
        at = 0
        while match := _TAG.search(source, at):
            at = match.end()
            slash, name = match.group(1, 2)
            if name is None:
                continue
            name = name.lower()
            if slash:
                if stack and stack[-1] == name and name not in _FORMATTING:  # as it mostly is
                    stack.pop()
                else:
                    self._end(name)
                continue
            if at - match.start() > 4 * MAX_ATTRIBUTES:
                self._trim(match)
            elif name in _FEW_RULES and len(stack) < MAX_DEPTH:
                stack.append(name)
                continue
            if name in _RAW and b"svg" not in self._open and b"math" not in self._open:
                end = re.compile(rb"</" + re.escape(name), re.I).search(source, at)
                at = end.start() if end else len(source)
            elif self._too_far(name, match):
                self._cut(match.start(), match.end())
                self._dropped += 1
        if not self._output:
            return source, []
        self._output.append(source[self._at :])
        return b"".join(self._output), self._findings()

    def _too_far(self, name: bytes, match: re.Match[bytes]) -> bool:
        """Follow a start tag; True if it must be left out."""
        if name in _VOID or name in _IMPLIED or name == b"a":
            return False
        if name in (b"html", b"body"):
            self.roots += 1
            return self.roots > 2 * MAX_ROOTS
        if match.group(3).endswith(b"/") and any(name in (b"svg", b"math") for name in self._open[-8:]):
            return False
        if len(self._open) >= MAX_DEPTH:
            return True
        if name in _FORMATTING:
            if len(self.formatting) >= MAX_FORMATTING:
                return True
            self.formatting.append(name)
        self._open.append(name)
        return False

    def _end(self, name: bytes) -> None:
        stack = self._open
        if name in _FORMATTING:  # the adoption agency takes it out of the middle
            for index in range(len(self.formatting) - 1, -1, -1):
                if self.formatting[index] == name:
                    del self.formatting[index]
                    break
            for index in range(len(stack) - 1, -1, -1):
                if stack[index] == name:
                    del stack[index]
                    return
            return
        stops = _BARRIERS if name in _SPECIAL else _SPECIAL
        for index in range(len(stack) - 1, -1, -1):
            if stack[index] == name:
                del stack[index:]
                return
            if stack[index] in stops:
                return

    def _trim(self, match: re.Match[bytes]) -> None:
        attributes = [found.end() for found in _ATTRIBUTE.finditer(match.group(3))]
        if len(attributes) > MAX_ATTRIBUTES:
            start = match.start(3)
            self._cut(start + attributes[MAX_ATTRIBUTES - 1], start + attributes[-1])
            self._trimmed += len(attributes) - MAX_ATTRIBUTES

    def _cut(self, start: int, end: int) -> None:
        if start >= self._at:
            self._output.append(self._source[self._at : start])
            self._at = end

    def _findings(self) -> list[Finding]:
        findings = []
        if self._dropped:
            message = f"nested too deeply: {self._dropped} tags left out"
            findings.append(Finding("too-deep", message, syntax="html", advice="close elements that are opened"))
        if self._trimmed:
            message = f"more than {MAX_ATTRIBUTES} attributes in one tag: {self._trimmed} left out"
            findings.append(Finding("too-many-attributes", message, syntax="html", advice="use fewer attributes"))
        return findings


def source_of(body: bytes) -> bytes:
    """A document of its own in UTF-8, without what would make the parser slow. In the pipeline,
    `quadloom.documents.syntaxes.registry.Context` does the same once for all syntaxes of a page."""
    return tame(utf8(body, charset_of(body).name))[0]


def base_of(tree: LexborHTMLParser, url: str) -> str:
    """The first `<base href>` of the document, resolved; else its own address."""
    base = tree.css_first("base[href]", default=None)
    return join(url, (base.attributes["href"] or "").strip()) if base is not None else url


# Lexbor flag: no mutation events while the tree is built. They serve <selectedcontent> alone and cost a third.
_WITHOUT_EVENTS = 1


def parse_html(source: bytes) -> LexborHTMLParser:
    """The tree of a source in UTF-8 that `tame` has seen."""
    return LexborHTMLParser(source, options=_WITHOUT_EVENTS)


# Names that the HTML parser takes only in a certain place.
_PLACES = {
    "frame": "<frameset><frame>",
    **{name: f"<table><{name}>" for name in ("tbody", "thead", "tfoot", "caption", "tr")},
    **{name: f"<table><tr><{name}>" for name in ("td", "th")},
}


def tag_ids(names: str) -> dict[int, str]:
    """Lexbor's number to name, for names separated by spaces. To compare numbers costs a third of comparing names, and
    a walk compares many. The library is asked for them, so that a new version may renumber."""
    numbers: dict[int, str] = {}
    for name in names.split():
        node = LexborHTMLParser(_PLACES.get(name, f"<{name}>")).css_first(name)
        if node is not None:
            numbers[node.tag_id] = name
    return numbers
