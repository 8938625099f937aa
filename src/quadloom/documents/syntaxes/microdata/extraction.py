"""HTML microdata to RDF, by the W3C note *Microdata to RDF* (second edition), `itemprop-reverse` included.

Only marked elements are read, in document order, and each is assigned to its nearest marked ancestor ("holder"). A
holder is an item or an element some `itemref` points at. The properties of an item are then its holder's list plus the
lists of what it refers to, so no subtree is ever walked twice.

Hostile pages: everything works on explicit stacks; `itemref` can multiply properties (n items referring to n
properties give n² statements), so the visits through it are capped; property elements inside each other repeat their
text, so that nesting is capped (items in items repeat nothing and are not). What a cap drops is reported as a Finding.
"""

from __future__ import annotations

import re
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html import elements as html_elements
from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.tree import base_of, source_of
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.microdata.values import (
    REGISTRY,
    Expansions,
    Languages,
    resolve,
    value_of,
    vocabulary_of,
)
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.sink import Sink
from quadloom.documents.syntaxes.terms import TYPE, iri
from quadloom.errors import SyntaxInvalid
from quadloom.model.finding import Finding

VISIT_LIMIT = 200_000
NESTING_LIMIT = 32

_MEMORABLE = 256  # characters of a name that is kept in memory between pages
_MARKED = ("itemscope", "itemprop", "itemprop-reverse")
_NOT_IN_FRAGMENT = re.compile(r"[\x00-\x20<>\"{}|^`\\\[\]\x7f]|%(?![0-9A-Fa-f]{2})")


def extract(body: bytes, *, url: str) -> bytes:
    """N-Triples of one page. Raises `SyntaxInvalid` if an item is, through `itemref`, a part of itself."""
    sink = Sink()
    tree = LexborHTMLParser(source_of(body))
    for finding in write(tree, sink, base=base_of(tree, url)):
        if finding.code == "microdata-itemref-loop":
            raise SyntaxInvalid(finding.message, code=finding.code)
    return sink.nquads()


def read(context: Context) -> None:
    """All items of a page."""
    document = MarkedPage(context.all_elements)
    if document.marks:
        conversion = Conversion(document, context.sink, context.base, Languages(context.all_elements))
        context.findings += conversion.run()
        context.shared["microdata"] = conversion


def write(tree: LexborHTMLParser, sink: Sink, *, base: str) -> list[Finding]:
    """Put the statements of all items of a parsed page into the sink; the page's defects come back as findings."""
    elements = html_elements.elements_of(tree)
    document = MarkedPage(elements)
    if not document.marks:
        return []
    return Conversion(document, sink, base, Languages(elements)).run()


class MarkedElement:
    """A marked element: an item, a property element, the target of an `itemref`, or several of these."""

    __slots__ = ("attributes", "depth", "held", "is_item", "names", "number", "reverse")

    def __init__(self, number: int, attributes: dict[str, str | None]) -> None:
        self.number = number
        self.attributes = attributes
        self.is_item = "itemscope" in attributes
        self.names = (attributes.get("itemprop") or "").split()
        self.reverse = (attributes.get("itemprop-reverse") or "").split()
        self.held: list[MarkedElement] = []
        self.depth = 0


class MarkedPage:
    """The marked elements of a page in document order, each assigned to its nearest holder."""

    __slots__ = ("_holders", "elements", "marks", "targets", "too_deep")

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.marks: list[MarkedElement] = []
        self.targets: dict[str, MarkedElement] = {}  # by id: the first element with an id that some `itemref` names
        self.too_deep = 0
        # Not in the marks themselves: holders and what they hold would refer to each other, and so keep the tree of
        # the page in memory until the garbage collector comes.
        self._holders: dict[int, MarkedElement] = {}
        found = _marked(elements, _MARKED)
        items = [mark for mark in found if mark.is_item]
        if not items:
            return
        wanted = {name for item in items for name in (item.attributes.get("itemref") or "").split()}
        if wanted:
            found = [mark for mark in _marked(elements, (*_MARKED, "id")) if self._is_wanted(mark, wanted)]
        for mark, above in zip(found, elements.nesting([mark.number for mark in found]), strict=True):
            if above >= 0:
                self._file(mark, found[above])
        self.marks = found

    def _is_wanted(self, mark: MarkedElement, wanted: set[str]) -> bool:
        name = mark.attributes.get("id")
        if name in wanted and name not in self.targets:
            self.targets[name] = mark
            return True
        return mark.is_item or bool(mark.names or mark.reverse)

    def _file(self, mark: MarkedElement, parent: MarkedElement) -> None:
        """Assign to a holder. `parent` is the nearest marked ancestor."""
        mark.depth = parent.depth + (0 if parent.is_item else 1)
        is_target = bool(self.targets) and self.targets.get(parent.attributes.get("id") or "") is parent
        holder = parent if parent.is_item or is_target else self._holders.get(parent.number)
        if holder is not None:
            self._holders[mark.number] = holder
        if mark.depth > NESTING_LIMIT:
            self.too_deep += 1
        elif holder is not None:
            holder.held.append(mark)


def _marked(elements: Elements, names: tuple[str, ...]) -> list[MarkedElement]:
    return [MarkedElement(number, elements.attributes(number)) for number in elements.having(names)]


class Conversion:
    """One run of the note's algorithm: the memory of subjects, the work still to do, and what went wrong."""

    def __init__(self, document: MarkedPage, sink: Sink, base: str, languages: Languages) -> None:
        self.document = document
        self._sink = sink
        self._resolver = ReferenceResolver(base)
        self._languages = languages
        self.subjects: dict[int, str] = {}
        self._started: set[int] = set()
        self._done: set[tuple[int, str]] = set()  # with the vocabulary's type
        self._predicates: dict[tuple[str, str], tuple[str | None, tuple[str, ...]]] = {}
        self.values: dict[int, str | None] = {}
        self._parts: dict[int, list[int]] = {}
        self._visits = 0
        self._loops = 0

    def run(self) -> list[Finding]:
        for mark in self.document.marks:
            if mark.is_item and not mark.names and mark.number not in self.subjects:
                self._item(mark)
        if self.document.targets:
            self._loops += _cycles(self._parts)
        return self._findings()

    def _item(self, top: MarkedElement) -> None:
        pending: list[tuple[MarkedElement, str]] = [(top, "")]
        while pending:
            item, inherited = pending.pop()
            own = [term for token in (item.attributes.get("itemtype") or "").split() if (term := iri(token))]
            kind = own[0][1:-1] if own else inherited
            key = (item.number, kind)
            if key in self._done or self._visits >= VISIT_LIMIT:
                continue
            self._done.add(key)
            if item.number in self._started:
                # Shared by several items: an untyped one takes the vocabulary of each, so it is processed again.
                self._visits += len(item.held)
            self._started.add(item.number)
            subject = self._subject(item)
            for term in own:
                self._sink.add(subject, TYPE, term)
            vocabulary, expansions = vocabulary_of(kind, REGISTRY) if kind else ("", {})
            for element in self._properties(item):
                self._statements(subject, vocabulary, expansions, element)
                if element.is_item and (element.names or element.reverse):
                    self._parts.setdefault(item.number, []).append(element.number)
                    pending.append((element, kind))

    def _properties(self, item: MarkedElement) -> list[MarkedElement]:
        """The elements that give properties to the item; the microdata algorithm on holders instead of nodes."""
        found: list[MarkedElement] = []
        if "itemref" not in item.attributes:
            return item.held
        targets = [self.document.targets.get(name) for name in (item.attributes["itemref"] or "").split()]
        pending = [target for target in reversed(targets) if target is not None]
        pending.extend(reversed(item.held))
        seen: set[int] = set()
        while pending and self._visits < VISIT_LIMIT:
            self._visits += 1
            mark = pending.pop()
            if mark is item:
                self._loops += 1
                continue
            if mark.number in seen:
                continue
            seen.add(mark.number)
            found.append(mark)
            if not mark.is_item:
                pending.extend(reversed(mark.held))
        return found

    def _statements(self, subject: str, vocabulary: str, expansions: Expansions, element: MarkedElement) -> None:
        if not element.names and not element.reverse:
            return
        value = self._value(element)
        if value is None:
            return
        for name in element.names:
            predicate, more = self._predicate(name, vocabulary, expansions)
            if predicate is not None:
                self._sink.add(subject, predicate, value)
                for other in more:
                    self._sink.add(subject, f"<{other}>", value)
        if element.reverse and not value.startswith('"'):
            for name in element.reverse:
                predicate, _ = self._predicate(name, vocabulary, expansions)
                if predicate is not None:
                    self._sink.add(value, predicate, subject)

    def _predicate(self, name: str, vocabulary: str, expansions: Expansions) -> tuple[str | None, tuple[str, ...]]:
        key = (vocabulary, name)
        known = self._predicates.get(key)
        if known is None:
            if vocabulary and len(name) + len(vocabulary) <= _MEMORABLE:
                predicate = _known_predicate(name, vocabulary)
            else:
                predicate = _predicate(name, vocabulary or self._resolver.base.partition("#")[0] + "#")
            known = self._predicates[key] = (predicate, expansions.get(name, ()))
        return known

    def _value(self, element: MarkedElement) -> str | None:
        if element.is_item:
            return self._subject(element)
        number = element.number
        if number not in self.values:
            self.values[number] = value_of(
                self.document.elements, number, element.attributes, self._resolver, self._languages
            )
        return self.values[number]

    def _subject(self, item: MarkedElement) -> str:
        subject = self.subjects.get(item.number)
        if subject is None:
            name = (item.attributes.get("itemid") or "").strip()
            subject = (resolve(self._resolver, name) if name else None) or self._sink.blank()
            self.subjects[item.number] = subject
        return subject

    def _findings(self) -> list[Finding]:
        defects = (
            (self._loops, "microdata-itemref-loop", "an item is part of itself through itemref"),
            (
                self._visits >= VISIT_LIMIT,
                "microdata-itemref-limit",
                f"itemref leads to more than {VISIT_LIMIT} properties; the rest was left out",
            ),
            (
                self.document.too_deep,
                "microdata-too-deep",
                f"more than {NESTING_LIMIT} property elements are nested; the innermost were left out",
            ),
        )
        return [Finding(code, message, syntax="microdata") for found, code, message in defects if found]


def _predicate(name: str, vocabulary: str) -> str | None:
    if own := iri(name):
        return own
    fragment = _NOT_IN_FRAGMENT.sub(lambda match: f"%{ord(match.group()):02X}", name)
    if vocabulary[-1] not in "#/":
        vocabulary += "#"
    return iri(vocabulary + (fragment.replace("#", "%23") if "#" in vocabulary else fragment))


_known_predicate = lru_cache(maxsize=4096)(_predicate)  # pages share vocabularies


def _cycles(parts: dict[int, list[int]]) -> int:
    """1 if the item graph has a cycle, else 0: depth-first with colours, on an explicit stack."""
    open_, closed = set[int](), set[int]()
    for start in parts:
        stack = [(start, False)]
        while stack:
            item, leaving = stack.pop()
            if leaving:
                open_.discard(item)
                closed.add(item)
            elif item in open_:
                return 1
            elif item not in closed:
                open_.add(item)
                stack.append((item, True))
                stack.extend((part, False) for part in parts.get(item, ()))
    return 0
