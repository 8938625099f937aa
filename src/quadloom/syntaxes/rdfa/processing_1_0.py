"""RDFa 1.0 (RDFa in XHTML, W3C Recommendation of 14 October 2008, section 5.5) where it differs from 1.1.

`@src` is a subject and never an object, `@typeof` types the subject, markup makes an XML literal of its own accord and
is not searched for statements. `@vocab`, `@prefix`, `@inlist` and the initial context do not exist.
"""

from __future__ import annotations

from typing import TypeVar

from quadloom.syntaxes.rdfa.frames import Frame, Lists
from quadloom.syntaxes.rdfa.processing import XML_LITERAL, Attributes, Namespaces, Processor
from quadloom.syntaxes.terms import literal

N = TypeVar("N")


class Processor10(Processor[N]):
    def _declare(self, frame: Frame, attributes: Attributes, namespaces: Namespaces) -> None:
        if self._host.xml_base and "xml:base" in attributes:
            super()._declare(frame, {"xml:base": attributes["xml:base"]}, ())
        if namespaces:
            frame.undo = []
            self._names.declare(namespaces, frame.undo)
        self._set_language(frame, attributes)

    def _add_roles(self, frame: Frame, attributes: Attributes) -> None:
        return

    def _links(self, attributes: Attributes) -> tuple[str | None, str | None]:
        return attributes.get("rel"), attributes.get("rev")

    def _process(self, node: N, tag: str, attributes: Attributes, parent: Frame, frame: Frame) -> None:
        if "inlist" in attributes:
            attributes = {name: value for name, value in attributes.items() if name != "inlist"}
        super()._process(node, tag, attributes, parent, frame)

    def _subject(
        self, attributes: Attributes, parent: Frame, frame: Frame, about: str | None, inherits: bool
    ) -> tuple[bool, str, str | None, str | None]:
        has_type = "typeof" in attributes
        named = about or self._source(attributes, frame) or self._target(attributes, frame)
        if named is None and inherits:
            named = self._document
        if named is None and has_type:
            named = self._blank()
        skip = named is None and "property" not in attributes
        subject = named or parent.object
        return skip, subject, None, subject if has_type else None

    def _linked_subject(
        self, attributes: Attributes, parent: Frame, frame: Frame, about: str | None, inherits: bool
    ) -> tuple[bool, str, str | None, str | None]:
        subject = about or self._source(attributes, frame)
        has_type = "typeof" in attributes
        if subject is None and inherits:
            subject = self._document
        if subject is None:
            subject = self._blank() if has_type else parent.object
        return False, subject, self._target(attributes, frame), subject if has_type else None

    @property
    def _document(self) -> str:
        """In 1.0 it is head and body, not the root, that stand for the document."""
        return f"<{self.base.iri}>"

    def _source(self, attributes: Attributes, frame: Frame) -> str | None:
        return self._names.iri(attributes.get("src"), frame.base)

    def _target(self, attributes: Attributes, frame: Frame) -> str | None:
        resource = self._names.resource(attributes.get("resource"), frame.base)
        return resource or self._names.iri(attributes.get("href"), frame.base)

    def _value(
        self, node: N, tag: str, attributes: Attributes, typed: str | None, frame: Frame, linked: bool
    ) -> str | None:
        written = attributes.get("content")
        datatype = self._datatype(attributes, frame) if "datatype" in attributes else None
        if written is None:
            # An empty `@datatype` asks for plain text; no `@datatype` leaves markup as it is.
            implied = datatype is None and attributes.get("datatype", "-").strip() != ""
            if datatype == XML_LITERAL or (implied and self._markup.has_elements(node)):
                frame.muted = True
                if not self._deepen(frame):
                    return None
                return literal(self._markup.xml(node, self._names.declared), "", XML_LITERAL[1:-1])
            written = self._text(node, frame)
        if written is None:
            return None
        return literal(written, "", datatype[1:-1]) if datatype else literal(written, frame.language)

    def _settle(self, parent: Frame, frame: Frame, subject: str, target: str, lists: Lists | None) -> None:
        frame.subject = subject
        frame.object = target
