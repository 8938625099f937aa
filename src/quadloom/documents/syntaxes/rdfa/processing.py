"""The RDFa 1.1 processing sequence (RDFa Core 1.1, section 7.5), one `enter` and one `leave` per element.

The processor knows neither a parser nor the order of elements: a walker calls it, for all elements or only for those
that can matter (see `walking`). Numbers in the comments are the steps of the specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from quadloom.documents.syntaxes.iri import BaseIri
from quadloom.documents.syntaxes.rdfa.frames import MAX_MARKUP_DEPTH, MAX_TEXT_DEPTH, RDFA, Frame, Lists, Triples
from quadloom.documents.syntaxes.rdfa.hosts import XHV, HostLanguage
from quadloom.documents.syntaxes.rdfa.names import MAX_NAMESPACE, Names, prefix_pairs
from quadloom.documents.syntaxes.terms import RDF, TYPE, XSD, literal

N = TypeVar("N")
N_contra = TypeVar("N_contra", contravariant=True)
Attributes = Mapping[str, str]
Namespaces = Sequence[tuple[str, str]]

XML_LITERAL = f"<{RDF}XMLLiteral>"
HTML_LITERAL = f"<{RDF}HTML>"
USES_VOCABULARY = f"<{RDFA}usesVocabulary>"
ROLE = f"<{XHV}role>"
# Datatypes that N-Triples writes in another way; as a plain datatype they make an ill-formed literal.
_TAGGED = frozenset({f"<{RDF}langString>", f"<{RDF}dirLangString>"})

_DECLARING = frozenset({"vocab", "prefix", "lang", "xml:lang", "xml:base"})
_RESOURCES = frozenset({"about", "resource", "href", "src", "rel", "rev", "property", "typeof", "role"})
_RELEVANT = _DECLARING | _RESOURCES
_PROPERTY = frozenset({"property"})
_MODIFIERS = frozenset({"datatype", "datetime", "inlist"})


class Markup(Protocol[N_contra]):
    """What the processor needs of a parsed element besides its attributes."""

    def text(self, node: N_contra) -> str: ...

    def xml(self, node: N_contra, namespaces: Mapping[str, str]) -> str: ...

    def html(self, node: N_contra) -> str: ...

    def has_elements(self, node: N_contra) -> bool: ...


class Element(Generic[N]):
    __slots__ = ("attributes", "node", "tag")

    def __init__(self, node: N, tag: str, attributes: Attributes) -> None:
        self.node = node
        self.tag = tag
        self.attributes = attributes


class Resources(NamedTuple):
    """New subject, current object resource and typed resource of an element."""

    subject: str
    target: str | None
    typed: str | None


class Processor(Generic[N]):
    def __init__(
        self,
        host: HostLanguage,
        markup: Markup[N],
        names: Names,
        base: BaseIri,
        new_blank: Callable[[], str],
        *,
        language: str = "",
        roles: bool = True,
    ) -> None:
        self.triples = Triples()
        self.base = base
        self._host = host
        self._markup = markup
        self._names = names
        self._blank = new_blank
        self._roles = roles
        self._frames = [Frame(f"<{base.iri}>", f"<{base.iri}>", base, language)]

    def enter(self, node: N, tag: str, attributes: Attributes, namespaces: Namespaces = ()) -> None:
        parent = self._frames[-1]
        relevant = _RELEVANT.intersection(attributes)
        if self.triples.full or parent.muted or not (relevant or namespaces):
            self._frames.append(parent)
        elif relevant == _PROPERTY and self._is_plain(tag, attributes, namespaces, parent):
            self._frames.append(self._add_plain(node, attributes, parent))
        else:
            frame = parent.child()
            self._frames.append(frame)
            if namespaces or not _DECLARING.isdisjoint(relevant):
                self._declare(frame, attributes, namespaces)
            self._process(Element(node, tag, attributes), parent, frame)

    def _is_plain(self, tag: str, attributes: Attributes, namespaces: Namespaces, parent: Frame) -> bool:
        """Whether the element only says something about the current subject, as nearly all do (`meta`, `span`)."""
        return (
            not namespaces
            and not parent.incomplete
            and len(self._frames) > 1
            and tag != "time"
            and _MODIFIERS.isdisjoint(attributes)
        )

    def _add_plain(self, node: N, attributes: Attributes, parent: Frame) -> Frame:
        """Steps 5 to 13 for such an element, at a third of the cost."""
        predicates = self._names.predicates(attributes["property"], parent.vocabulary)
        content = attributes.get("content")
        if content is not None and parent.subject == parent.object:
            frame = parent
        else:
            frame = parent.child()
            frame.subject = parent.object
        if predicates:
            text = self._text(node, frame) if content is None else content
            if text is not None:
                self._describe(parent.object, predicates, literal(text, parent.language), None)
        return frame

    def leave(self) -> None:
        frame = self._frames.pop()
        if frame is not self._frames[-1]:
            self._close(frame)

    def finish(self) -> None:
        """After the root has been left: lists that belong to the document itself."""
        self._close(self._frames[0])

    def _close(self, frame: Frame) -> None:
        if frame.lists:
            self._write_lists(frame.object, frame.lists)
        if frame.own_lists:
            self._write_lists(frame.subject, frame.own_lists)
        if frame.undo:
            self._names.withdraw(frame.undo)

    def _write_lists(self, subject: str, lists: Lists) -> None:
        for predicate, values in lists.items():
            if not self.triples.full:
                self.triples.add_list(subject, predicate, values, [self._blank() for _ in values])

    def _declare(self, frame: Frame, attributes: Attributes, namespaces: Namespaces) -> None:
        """Steps 2 to 4: vocabulary, prefixes, language; and the base of XML hosts."""
        if self._host.xml_base and "xml:base" in attributes:
            frame.base = frame.base.moved(attributes["xml:base"])
        vocabulary = attributes.get("vocab")
        if vocabulary is not None:
            frame.vocabulary = ""
            iri = self._names.iri(vocabulary, frame.base) if vocabulary.strip() else None
            if iri and len(iri) <= MAX_NAMESPACE:
                frame.vocabulary = iri[1:-1]
                self.triples.add(f"<{self.base.iri}>", USES_VOCABULARY, iri)
        prefixes = attributes.get("prefix")
        if namespaces or prefixes:
            frame.undo = []
            self._names.declare(namespaces, frame.undo)
            if prefixes:
                self._names.declare(prefix_pairs(prefixes), frame.undo)
        self._set_language(frame, attributes)

    def _set_language(self, frame: Frame, attributes: Attributes) -> None:
        # In HTML, `xml:lang` is an attribute without meaning (HTML, "the lang and xml:lang attributes"); it serves
        # only if `lang` is missing. In XML, `xml:lang` wins.
        first, second = ("lang", "xml:lang") if self._host.html_parser else ("xml:lang", "lang")
        if first in attributes and (first != "lang" or self._host.plain_lang):
            frame.language = attributes[first].strip()
        elif second in attributes and (second != "lang" or self._host.plain_lang):
            frame.language = attributes[second].strip()

    def _process(self, element: Element[N], parent: Frame, frame: Frame) -> None:
        attributes = element.attributes
        if self._roles and "role" in attributes:
            self._add_roles(frame, attributes)
        rel, rev = self._links(attributes) if "rel" in attributes or "rev" in attributes else (None, None)
        linked = rel is not None or rev is not None
        resources = (self._linked_resources if linked else self._resources)(element, parent, frame)
        if resources is None:
            return
        subject, target = resources.subject, resources.target
        if resources.typed:  # 7
            for kind in self._names.names(attributes["typeof"], frame.vocabulary):
                self.triples.add(resources.typed, TYPE, kind)
        lists = self._lists(parent, subject) if "inlist" in attributes else None  # 8
        frame.incomplete = []
        if linked:
            target = self._relate(rel or "", rev or "", resources, frame, lists)
        if "property" in attributes:  # 11
            predicates = self._names.predicates(attributes["property"], frame.vocabulary)
            value = self._value(element, resources, frame, linked=linked) if predicates else None
            if value is not None:
                self._describe(subject, predicates, value, lists)
        if parent.incomplete:
            self._complete(parent, subject)
        self._settle(parent, frame, subject, target or subject, lists)

    def _complete(self, parent: Frame, subject: str) -> None:
        """Step 12: the statements that waited for a subject."""
        for predicate, direction in parent.incomplete:
            if self.triples.full:
                return
            if isinstance(direction, list):
                direction.append(subject)
            elif direction == "rel":
                self.triples.add(parent.subject, predicate, subject)
            else:
                self.triples.add(subject, predicate, parent.subject)

    def _settle(self, parent: Frame, frame: Frame, subject: str, target: str, lists: Lists | None) -> None:
        """Step 13: what the children see, and which frame holds the lists of new subjects."""
        frame.subject = subject
        frame.object = target
        if target != parent.object:
            frame.list_frame = None
        if subject != parent.object:
            if target == subject:
                frame.lists = lists
            else:
                frame.own_lists = lists

    def _lists(self, parent: Frame, subject: str) -> Lists | None:
        """Where `@inlist` values of a subject go."""
        if subject != parent.object:
            return {}
        owner = parent.list_frame or parent
        if owner.lists is None:
            owner.lists = {}
        return owner.lists

    def _add_roles(self, frame: Frame, attributes: Attributes) -> None:
        """Role Attribute 1.0, section 4: the subject is the element itself."""
        identifier = attributes.get("id")
        subject = (self._names.iri(f"#{identifier}", frame.base) if identifier else None) or self._blank()
        for role in self._names.predicates(attributes["role"], XHV):
            self.triples.add(subject, ROLE, role)

    def _links(self, attributes: Attributes) -> tuple[str | None, str | None]:
        rel, rev = attributes.get("rel"), attributes.get("rev")
        if self._host.mute_link_words and "property" in attributes:
            rel, rev = _curies_only(rel), _curies_only(rev)
        return rel, rev

    def _resources(self, element: Element[N], parent: Frame, frame: Frame) -> Resources | None:
        """Step 5: the resources of an element without links; None = the element is skipped."""
        attributes = element.attributes
        about = self._names.resource(attributes.get("about"), frame.base)
        root = self._root(frame)
        has_type = "typeof" in attributes
        if "property" in attributes and "content" not in attributes and "datatype" not in attributes:  # 5.1
            subject = about or root or parent.object
            if not has_type or about or root:
                return Resources(subject, None, subject if has_type else None)
            typed = self._target(attributes, frame)
            typed = typed or (subject if self._inherits(element) else self._blank())
            return Resources(subject, typed, typed)
        named = about or self._target(attributes, frame) or root  # 5.2
        if named is None and not has_type and "property" not in attributes:
            return None
        if named is None and has_type and not self._inherits(element):
            named = self._blank()
        subject = named or parent.object
        return Resources(subject, None, subject if has_type else None)

    def _linked_resources(self, element: Element[N], parent: Frame, frame: Frame) -> Resources | None:
        """Step 6: the resources of an element with `@rel` or `@rev`."""
        attributes = element.attributes
        about = self._names.resource(attributes.get("about"), frame.base)
        subject = about or self._root(frame) or parent.object
        target = self._target(attributes, frame)
        if "typeof" not in attributes:
            return Resources(subject, target, None)
        if "about" in attributes:
            return Resources(subject, target, about)
        if target is None and self._inherits(element):
            return Resources(subject, None, subject)
        target = target or self._blank()
        return Resources(subject, target, target)

    def _root(self, frame: Frame) -> str | None:
        """The root element acts as if it had an empty `@about`."""
        return f"<{frame.base.iri}>" if len(self._frames) == 2 else None

    def _inherits(self, element: Element[N]) -> bool:
        return self._host.inherit_head_body and element.tag in ("head", "body")

    def _target(self, attributes: Attributes, frame: Frame) -> str | None:
        """The resource of `@resource`, `@href` or `@src`; an empty safe CURIE gives way to the next one."""
        if "resource" in attributes:
            resource = self._names.resource(attributes["resource"], frame.base)
            if resource:
                return resource
        return self._names.iri(attributes.get("href", attributes.get("src")), frame.base)

    def _relate(self, rel: str, rev: str, resources: Resources, frame: Frame, lists: Lists | None) -> str:
        """Steps 9 and 10: statements with the target, or incomplete ones; the current object resource."""
        subject, target = resources.subject, resources.target
        forward = self._names.links(rel, frame.vocabulary)
        backward = self._names.links(rev, frame.vocabulary)
        if target is None:
            for predicate in forward:
                frame.incomplete.append((predicate, "rel" if lists is None else lists.setdefault(predicate, [])))
            frame.incomplete.extend((predicate, "rev") for predicate in backward)
            return self._blank()
        for predicate in forward:
            if lists is None:
                self.triples.add(subject, predicate, target)
            else:
                lists.setdefault(predicate, []).append(target)
        for predicate in backward:
            self.triples.add(target, predicate, subject)
        return target

    def _describe(self, subject: str, predicates: list[str], value: str, lists: Lists | None) -> None:
        for predicate in predicates:
            if self.triples.full:
                return
            if lists is None:
                self.triples.add(subject, predicate, value)
            else:
                lists.setdefault(predicate, []).append(value)

    def _value(self, element: Element[N], resources: Resources, frame: Frame, *, linked: bool) -> str | None:
        """Step 11: the current property value; None if a limit forbids it."""
        attributes = element.attributes
        written = attributes.get("content")
        dated = self._host.datetime and written is None
        if dated:
            written = attributes.get("datetime")
        if "datatype" in attributes:
            return self._typed_value(element, frame, written)
        if written is not None:
            kind = time_datatype(written) if dated else ""
            return literal(written, "" if kind else frame.language, kind)
        resource = None if linked else self._target(attributes, frame)
        if resource is None and "about" not in attributes:
            resource = resources.typed
        if resource:
            return resource
        text = self._text(element.node, frame)
        if text is None:
            return None
        kind = time_datatype(text) if dated and element.tag == "time" else ""
        return literal(text, "" if kind else frame.language, kind)

    def _typed_value(self, element: Element[N], frame: Frame, written: str | None) -> str | None:
        datatype = self._datatype(element.attributes, frame)
        if written is None:
            if datatype in (XML_LITERAL, HTML_LITERAL):
                written = self._written_markup(element.node, frame, as_html=datatype == HTML_LITERAL)
            else:
                written = self._text(element.node, frame)
        if written is None:
            return None
        return literal(written, "", datatype[1:-1]) if datatype else literal(written, frame.language)

    def _datatype(self, attributes: Attributes, frame: Frame) -> str | None:
        """The datatype; None if the attribute is empty or resolves to nothing that can be one."""
        value = attributes["datatype"].strip()
        datatype = self._names.name(value, frame.vocabulary) if value else None
        return None if datatype is None or datatype[0] == "_" or datatype in _TAGGED else datatype

    def _text(self, node: N, frame: Frame) -> str | None:
        frame.text_depth += 1
        return self._markup.text(node) if frame.text_depth <= MAX_TEXT_DEPTH else None

    def _written_markup(self, node: N, frame: Frame, *, as_html: bool) -> str | None:
        frame.markup_depth += 1
        if frame.markup_depth > MAX_MARKUP_DEPTH:
            return None
        return self._markup.html(node) if as_html else self._markup.xml(node, self._names.declared)


def _curies_only(value: str | None) -> str | None:
    """HTML+RDFa 1.1, section 3.1: words go; an attribute left empty counts as absent."""
    if value is None:
        return None
    return " ".join(token for token in value.split() if ":" in token) or None


_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d+)?"
_DAY = r"-?\d{4,}-\d\d-\d\d"
_SPELLINGS = tuple(
    (f"{XSD}{name}", re.compile(pattern, re.ASCII))
    for name, pattern in (
        ("dateTime", rf"{_DAY}T{_CLOCK}{_ZONE}"),
        ("date", rf"{_DAY}{_ZONE}"),
        ("time", rf"{_CLOCK}{_ZONE}"),
        ("gYearMonth", rf"-?\d{{4,}}-\d\d{_ZONE}"),
        ("gYear", rf"-?\d{{4,}}{_ZONE}"),
        (
            "duration",
            r"-?P(?=[\dT])(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?",
        ),
    )
)
# No date is spelled longer than this; longer text is not tried against the patterns.
_LONGEST = 64


def time_datatype(text: str) -> str:
    """The XML Schema datatype whose spelling `text` has, or "". Blanks around it are part of the spelling."""
    if len(text) <= _LONGEST:
        for datatype, spelling in _SPELLINGS:
            if spelling.fullmatch(text):
                return datatype
    return ""
