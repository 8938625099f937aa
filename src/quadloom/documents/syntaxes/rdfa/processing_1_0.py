"""RDFa 1.0 (RDFa in XHTML, W3C Recommendation of 14 October 2008, section 5.5) where it differs from 1.1.

`@src` is a subject and never an object, `@typeof` types the subject, markup makes an XML literal of its own accord and
is not searched for statements. `@vocab`, `@prefix`, `@inlist` and the initial context do not exist.
"""

from __future__ import annotations

from typing import TypeVar

from quadloom.documents.syntaxes.rdfa.frames import Frame, Lists
from quadloom.documents.syntaxes.rdfa.processing import (
    XML_LITERAL,
    Attributes,
    Element,
    Namespaces,
    Processor,
    Resources,
)
from quadloom.documents.syntaxes.terms import literal

N = TypeVar("N")


class Processor10(Processor[N]):
    def _declare(self, frame: Frame, attributes: Attributes, namespaces: Namespaces) -> None:
        if self._host.xml_base and "xml:base" in attributes:
            super()._declare(frame, {"xml:base": attributes["xml:base"]}, ())
        if namespaces:
            frame.undo = []
            self._names.declare(namespaces, frame.undo)
        self._set_language(frame, attributes)

    def _is_plain(self, tag: str, attributes: Attributes, namespaces: Namespaces, parent: Frame) -> bool:
        return False

    def _add_roles(self, frame: Frame, attributes: Attributes) -> None:
        return

    def _links(self, attributes: Attributes) -> tuple[str | None, str | None]:
        return attributes.get("rel"), attributes.get("rev")

    def _lists(self, parent: Frame, subject: str) -> Lists | None:
        return None

    def _resources(self, element: Element[N], parent: Frame, frame: Frame) -> Resources | None:
        attributes = element.attributes
        has_type = "typeof" in attributes
        named = self._named(element, frame) or self._target(attributes, frame)
        if named is None and self._inherits(element):
            named = self._document
        if named is None and not has_type and "property" not in attributes:
            return None
        subject = named or (self._blank() if has_type else parent.object)
        return Resources(subject, None, subject if has_type else None)

    def _linked_resources(self, element: Element[N], parent: Frame, frame: Frame) -> Resources | None:
        has_type = "typeof" in element.attributes
        subject = self._named(element, frame)
        if subject is None and self._inherits(element):
            subject = self._document
        if subject is None:
            subject = self._blank() if has_type else parent.object
        return Resources(subject, self._target(element.attributes, frame), subject if has_type else None)

    def _named(self, element: Element[N], frame: Frame) -> str | None:
        about = self._names.resource(element.attributes.get("about"), frame.base)
        return about or self._names.iri(element.attributes.get("src"), frame.base)

    @property
    def _document(self) -> str:
        """In 1.0 it is head and body, not the root, that stand for the document."""
        return f"<{self.base.iri}>"

    def _target(self, attributes: Attributes, frame: Frame) -> str | None:
        resource = self._names.resource(attributes.get("resource"), frame.base)
        return resource or self._names.iri(attributes.get("href"), frame.base)

    def _value(self, element: Element[N], resources: Resources, frame: Frame, *, linked: bool) -> str | None:
        attributes = element.attributes
        written = attributes.get("content")
        datatype = self._datatype(attributes, frame) if "datatype" in attributes else None
        if written is None:
            # An empty `@datatype` asks for plain text; no `@datatype` leaves markup as it is.
            implied = datatype is None and attributes.get("datatype", "-").strip() != ""
            if datatype == XML_LITERAL or (implied and self._markup.has_elements(element.node)):
                frame.muted = True
                datatype = XML_LITERAL
                written = self._written_markup(element.node, frame, as_html=False)
            else:
                written = self._text(element.node, frame)
        if written is None:
            return None
        return literal(written, "", datatype[1:-1]) if datatype else literal(written, frame.language)

    def _settle(self, parent: Frame, frame: Frame, subject: str, target: str, lists: Lists | None) -> None:
        frame.subject = subject
        frame.object = target
