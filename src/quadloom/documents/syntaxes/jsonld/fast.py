"""The fast path from JSON-LD to statements, for what nearly all pages have.

Expansion builds a second tree with an object for every value, which the writer then walks again. If a context is simple
(no scoped contexts, no maps of indexes or languages, no reverse or nested terms), one walk over the JSON is enough:
each key is looked up once per context in `ActiveContext.plans`, and statements are written at once. Anything that might
differ from the complete path raises `NotSimple`, and the caller takes that path, also for errors. A property test
compares both on generated documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.context import ContextProcessor
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.rdf import FIRST, NIL, REST, is_language, scalar
from quadloom.documents.syntaxes.jsonld.terms import KEYWORDS, UNSET, ActiveContext, TermDefinition, Unset
from quadloom.documents.syntaxes.terms import TYPE, XSD, literal

_MAX_PLANS = 5000  # keys remembered for one context; authors invent more, so the cache is emptied when full
_NO_TERM = TermDefinition()
_VALUE_KEYS = frozenset(("@value", "@type", "@language"))
_LIST_KEYS = frozenset(("@list", "@set", "@value"))  # of objects within a list that take the complete path


class NotSimple(Exception):
    """The document needs the complete path. Nothing has been written."""


class _Plan(NamedTuple):
    """What to do with a key: `keyword` is set for keywords, else `predicate` (None: say nothing) and the coercion."""

    keyword: str
    predicate: str | None
    coercion: str = ""  # @id, @vocab, or a datatype
    language: str = ""
    is_list: bool = False
    skip: bool = False


class FastWalk:
    """Statements of one document into `statements`; `dropped` counts those whose terms were not well-formed, `spaced`
    the addresses with spaces, which are read as a browser does."""

    def __init__(self, processor: ContextProcessor, blank: Callable[[], str], base: str) -> None:
        self._processor = processor
        self._blank = blank
        self._base = base
        self._labels: dict[str, str] = {}
        self.statements: list[tuple[str, str, str]] = []
        self.dropped = self.spaced = 0

    def document(self, value: Json) -> None:
        """A whole document. Raises `NotSimple` or what context processing raises."""
        if isinstance(value, list):
            for item in value:
                self.document(item)
        elif isinstance(value, dict):
            context = ActiveContext.initial(self._base)
            if "@context" in value:
                context = self._processor.process(context, value["@context"], self._base)
            if "@graph" in value:
                if value.keys() - {"@context", "@graph"}:
                    raise NotSimple
                self._top(value["@graph"], context)
            else:
                self._node(value, context, begun=True)

    def _top(self, value: Json, context: ActiveContext) -> None:
        """The nodes of a top-level @graph; anything else there says nothing."""
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                if item.keys() & {"@value", "@list", "@set", "@graph"}:
                    raise NotSimple
                self._node(item, context)
            elif isinstance(item, list):
                raise NotSimple

    def _node(self, element: dict[str, Json], context: ActiveContext, *, begun: bool = False) -> str | None:
        """Write a node object and what it contains; `begun`: its own @context is already in `context`."""
        if not begun and "@context" in element:
            context = self._processor.process(context, element["@context"], self._base)
        if context.previous is not None or context.direction is not None:
            raise NotSimple
        plans = cast(dict[str, _Plan], context.plans)
        name: Json | Unset = UNSET
        types: Json | Unset = UNSET
        properties: list[tuple[_Plan, Json]] = []
        for key, value in element.items():
            plan = plans.get(key) or _planned(context, key)
            if not plan.keyword:
                if not plan.skip:
                    properties.append((plan, value))
            elif plan.keyword == "@id" and name is UNSET:
                name = value
            elif plan.keyword == "@type" and types is UNSET:
                types = value
            elif plan.keyword != "@context":
                raise NotSimple
        subject = self._blank() if isinstance(name, Unset) else self._reference(name, context)
        if not isinstance(types, Unset):
            self._types(subject, types, context)
        for plan, value in properties:
            if plan.is_list:
                items: list[Json] = value if isinstance(value, list) else [value]
                if value is not None:
                    self._state(subject, plan.predicate, self._list(items, subject, plan, context))
            elif isinstance(value, str):
                obj = self._string(value, plan, context) if plan.coercion else literal(value, plan.language)
                if subject is None or plan.predicate is None or obj is None:
                    self.dropped += 1
                else:
                    self.statements.append((subject, plan.predicate, obj))
            elif value is not None:
                self._values(subject, plan, value, context)
        return subject

    def _values(self, subject: str | None, plan: _Plan, value: Json, context: ActiveContext) -> None:
        if isinstance(value, dict) and value.keys() == {"@set"}:
            value = value["@set"]
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, list):
                self._values(subject, plan, item, context)
            elif item is not None:
                if isinstance(item, dict) and "@value" in item and item["@value"] is None:
                    raise NotSimple
                self._state(subject, plan.predicate, self._object(item, subject, plan, context))

    def _object(self, item: Json, subject: str | None, plan: _Plan, context: ActiveContext) -> str | None:
        if isinstance(item, str):
            return self._string(item, plan, context)
        if isinstance(item, dict):
            if "@value" in item:
                return self._value_object(item, context)
            if "@list" in item:
                items = item["@list"]
                if len(item) > 1 or plan.is_list or items is None:
                    raise NotSimple
                return self._list(items if isinstance(items, list) else [items], subject, plan, context)
            if "@set" in item:
                raise NotSimple
            return self._node(item, context)
        if plan.coercion in ("@id", "@vocab", ""):
            return scalar(item)
        return scalar(item, plan.coercion) if jsonld_iri.is_well_formed(plan.coercion) else None

    def _list(self, items: list[Json], subject: str | None, plan: _Plan, context: ActiveContext) -> str:
        if subject is None or plan.predicate is None:
            raise NotSimple  # a list that nothing refers to is not written
        items = [item for item in items if item is not None]
        for item in items:
            if isinstance(item, list) or (isinstance(item, dict) and not _LIST_KEYS.isdisjoint(item)):
                raise NotSimple
        if not items:
            return NIL
        cells = [self._blank() for _ in items]
        for cell, rest, item in zip(cells, [*cells[1:], NIL], items, strict=True):
            obj = self._object(item, cell, plan, context)
            if obj is not None:
                self.statements.append((cell, FIRST, obj))
            self.statements.append((cell, REST, rest))
        return cells[0]

    def _string(self, text: str, plan: _Plan, context: ActiveContext) -> str | None:
        if not plan.coercion:
            return literal(text, plan.language)
        if plan.coercion == "@id":
            return self._reference(text, context)
        if plan.coercion == "@vocab":
            return self._resource(context.expand(text, relative=True, vocab=True))
        return _typed(text, plan.coercion)

    def _value_object(self, item: dict[str, Json], context: ActiveContext) -> str | None:
        if item.keys() - _VALUE_KEYS:
            raise NotSimple
        value, datatype, language = item["@value"], item.get("@type"), item.get("@language")
        if isinstance(value, (dict, list)) or value is None or ("@type" in item and "@language" in item):
            raise NotSimple
        if "@language" in item:
            if not isinstance(language, str) or not isinstance(value, str):
                raise NotSimple
            return literal(value, language) if is_language(language) else None
        typed = ""
        if "@type" in item:
            if not isinstance(datatype, str) or context.terms.get(datatype, _NO_TERM).context is not UNSET:
                raise NotSimple
            expanded = context.expand(datatype, relative=True, vocab=True)
            if expanded is None or expanded.startswith("_:") or not jsonld_iri.has_iri_form(expanded):
                raise NotSimple
            typed = expanded
        if isinstance(value, str):
            return _typed(value, typed) if typed else literal(value)
        return scalar(value, typed) if not typed or jsonld_iri.is_well_formed(typed) else None

    def _types(self, subject: str | None, types: Json, context: ActiveContext) -> None:
        for item in types if isinstance(types, list) else [types]:
            if not isinstance(item, str) or context.terms.get(item, _NO_TERM).context is not UNSET:
                raise NotSimple
            self._state(subject, TYPE, self._resource(context.expand(item, relative=True, vocab=True)))

    def _reference(self, name: Json, context: ActiveContext) -> str | None:
        if not isinstance(name, str):
            raise NotSimple
        return self._resource(context.expand(name, relative=True))

    def _resource(self, name: str | None) -> str | None:
        if name is None:
            return None
        if name.startswith("_:"):
            label = self._labels.get(name)
            if label is None:
                label = self._labels[name] = self._blank()
            return label
        term = jsonld_iri.well_formed_term(name)
        if term is None and (term := jsonld_iri.spaced_term(name, self._base)) is not None:
            self.spaced += 1
        return term

    def _state(self, subject: str | None, predicate: str | None, obj: str | None) -> None:
        if subject is None or predicate is None or obj is None:
            self.dropped += 1
        else:
            self.statements.append((subject, predicate, obj))


def _typed(text: str, datatype: str) -> str | None:
    if not jsonld_iri.is_well_formed(datatype):
        return None
    return literal(text, datatype="" if datatype == f"{XSD}string" else datatype)


def _planned(context: ActiveContext, key: str) -> _Plan:
    plan = _plan(context, key)
    if len(context.plans) >= _MAX_PLANS:
        context.plans.clear()
    if len(key) < 256:
        context.plans[key] = plan
    return plan


def _plan(context: ActiveContext, key: str) -> _Plan:
    if key == "@context":
        return _Plan("@context", None)
    name = context.expand(key, vocab=True)
    if name is None or (name not in KEYWORDS and ":" not in name):
        return _Plan("", None, skip=True)
    if name in KEYWORDS:
        return _Plan(name, None)
    term = context.terms.get(key, _NO_TERM)
    language = context.language if isinstance(term.language, Unset) else term.language
    simple = term.context is UNSET and not term.reverse and term.container <= {"@set", "@list"}
    if not simple or term.type == "@json" or isinstance(term.direction, str):
        return _Plan("@nest", None)  # no keyword that a node handles, so the walk ends here
    if language is not None and not is_language(language):
        return _Plan("@nest", None)
    return _Plan(
        "",
        None if name.startswith("_:") else jsonld_iri.well_formed_term(name),
        coercion="" if term.type in (None, "@none") else str(term.type),
        language=language or "",
        is_list="@list" in term.container,
    )
