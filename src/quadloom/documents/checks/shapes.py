"""Profiles in SHACL: the part of the language that says what an item must have.

Node shapes with `sh:targetClass` and property shapes whose path is one property. Constraints: minCount, maxCount,
datatype, class, nodeKind, pattern, in, hasValue, minLength, maxLength and the four bounds. Anything else in a file is
left to the complete pass (`asking.audit.shacl`), and `left_out` names it, so that nobody trusts a check that is not
made. Terms of schema.org match with http and https.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec
import pyoxigraph as ox

from quadloom.documents.checks.items import Item, Items, Problem, Stated, Target, local, text_of
from quadloom.documents.checks.values import is_number
from quadloom.documents.syntaxes.terms import RDF, RDFS, TYPE, XSD
from quadloom.errors import SettingsError
from quadloom.model.finding import Severity

_SH = "http://www.w3.org/ns/shacl#"
_SEVERITY: dict[str, Severity] = {f"{_SH}Violation": "error", f"{_SH}Warning": "warning", f"{_SH}Info": "info"}
_DESCRIBING = frozenset(("message", "name", "description", "severity", "order", "group", "path", "deactivated"))
_NUMERIC = tuple(
    f"^^<{XSD}{name}>"
    for name in ("integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger")
)
_NODE_WORDS = _DESCRIBING | {"targetClass", "property", "closed", "ignoredProperties"}


class Constraint(msgspec.Struct, frozen=True):
    """One constraint of one property. `value` is its parameter as text, `values` that of `sh:in`."""

    name: str
    value: str
    values: tuple[str, ...] = ()


class PropertyShape(msgspec.Struct, frozen=True):
    path: str  # IRI
    constraints: tuple[Constraint, ...]
    severity: Severity = "error"
    message: str = ""


class NodeShape(msgspec.Struct, frozen=True):
    targets: tuple[str, ...]  # IRIs of classes
    properties: tuple[PropertyShape, ...]
    left_out: tuple[str, ...] = ()  # words of SHACL that only the complete pass knows


def shape_problems(items: Items, shapes: tuple[NodeShape, ...]) -> list[Problem]:
    """Where items of a target class do not keep to their shape."""
    found: list[Problem] = []
    for item in items.by_subject.values():
        kinds = {_folded(term[1:-1]) for term in item.types}
        for shape in shapes:
            if not kinds.isdisjoint(shape.targets):
                for one in shape.properties:
                    found += _property(item, one, items)
    return found


def _property(item: Item, shape: PropertyShape, items: Items) -> list[Problem]:
    stated = [Stated(*one) for one in item.stated if _folded(one[0][1:-1]) == shape.path]
    found: list[Problem] = []
    for constraint in shape.constraints:
        count = constraint.name in ("minCount", "maxCount", "hasValue")
        if count:
            if not _counts(constraint, list(dict.fromkeys(one.value for one in stated))):
                whole = Stated(f"<{shape.path}>", item.types[0] if item.types else "", item.syntax)
                found.append(_problem(item, shape, constraint, whole, "item", "nothing that fits"))
            continue
        check = _CHECKS[constraint.name]
        found += [
            _problem(item, shape, constraint, one, "value", text_of(one.value) if one.value[0] == '"' else one.value)
            for one in stated
            if not check(one.value, constraint, items)
        ]
    return found


def _problem(
    item: Item, shape: PropertyShape, constraint: Constraint, stated: Stated, target: Target, found: str
) -> Problem:
    name = local(f"<{shape.path}>")
    rule = f"sh:{constraint.name} {', '.join(constraint.values) or constraint.value}"
    message = shape.message or f"{name} does not keep to {rule}"
    advice = f"make {name} fit the shape"
    return Problem(item, stated, target, "shacl-violation", shape.severity, message, found[:80], rule, advice)


def _counts(constraint: Constraint, values: list[str]) -> bool:
    if constraint.name == "hasValue":
        return any(_folded_term(value) == constraint.value for value in values)
    number = int(constraint.value)
    return len(values) >= number if constraint.name == "minCount" else len(values) <= number


def _term(value: str) -> str:
    return text_of(value) if value.startswith('"') else _folded(value.strip("<>"))


def _folded_term(value: str) -> str:
    return f"<{_folded(value[1:-1])}>" if value[0] == "<" else value


def _datatype(value: str, constraint: Constraint, _items: Items) -> bool:
    if not value.startswith('"'):
        return False
    end = value[value.rindex('"') + 1 :]
    stated = end[3:-1] if end.startswith("^^") else f"{RDF}langString" if end.startswith("@") else f"{XSD}string"
    return stated == constraint.value


def _class(value: str, constraint: Constraint, items: Items) -> bool:
    other = items.by_subject.get(value)
    return other is not None and any(_folded(term[1:-1]) == constraint.value for term in other.types)


def _kind(value: str, constraint: Constraint, _items: Items) -> bool:
    kind = "Literal" if value.startswith('"') else "BlankNode" if value.startswith("_:") else "IRI"
    return kind in constraint.value.removeprefix(_SH)


def _pattern(value: str, constraint: Constraint, _items: Items) -> bool:
    return not value.startswith("_:") and re.search(constraint.value, _term(value)[:2000]) is not None


def _bound(compare: Callable[[float, float], bool]) -> Callable[[str, Constraint, Items], bool]:
    def check(value: str, constraint: Constraint, _items: Items) -> bool:
        text = text_of(value) if value.startswith('"') and value.endswith(_NUMERIC) else ""
        return is_number(text) and compare(float(text), float(constraint.value))

    return check


_CHECKS: dict[str, Callable[[str, Constraint, Items], bool]] = {
    "datatype": _datatype,
    "class": _class,
    "nodeKind": _kind,
    "pattern": _pattern,
    "in": lambda value, constraint, _items: _folded_term(value) in constraint.values,
    "minLength": lambda value, constraint, _items: len(_term(value)) >= int(constraint.value),
    "maxLength": lambda value, constraint, _items: len(_term(value)) <= int(constraint.value),
    "minInclusive": _bound(lambda value, bound: value >= bound),
    "maxInclusive": _bound(lambda value, bound: value <= bound),
    "minExclusive": _bound(lambda value, bound: value > bound),
    "maxExclusive": _bound(lambda value, bound: value < bound),
}
_KNOWN = frozenset(_CHECKS) | {"minCount", "maxCount", "hasValue"}


@lru_cache(maxsize=16)
def shapes(path: str) -> tuple[NodeShape, ...]:
    """The shapes of a Turtle file, as far as they are in the subset. Raises `SettingsError` for what cannot be read."""
    try:
        store = ox.Store()
        store.load(Path(path).read_bytes(), ox.RdfFormat.TURTLE, base_iri=Path(path).absolute().as_uri())
    except (OSError, SyntaxError, ValueError) as error:
        raise SettingsError(
            f"the shapes {path} cannot be read: {error}", hint="audit.profiles takes Turtle files"
        ) from None
    found = [_node_shape(store, node) for node in _nodes(store)]
    if not found:
        raise SettingsError(f"{path} has no node shape with a target", hint="add sh:targetClass to a sh:NodeShape")
    return tuple(found)


def _nodes(store: ox.Store) -> list[ox.NamedNode | ox.BlankNode]:
    targeted = {quad.subject for quad in store.quads_for_pattern(None, ox.NamedNode(f"{_SH}targetClass"), None)}
    shaped = {
        quad.subject
        for quad in store.quads_for_pattern(None, ox.NamedNode(TYPE[1:-1]), ox.NamedNode(f"{_SH}NodeShape"))
    }
    classes = {
        quad.subject for quad in store.quads_for_pattern(None, ox.NamedNode(TYPE[1:-1]), ox.NamedNode(f"{RDFS}Class"))
    }
    found = [node for node in {*targeted, *(shaped & classes)} if isinstance(node, (ox.NamedNode, ox.BlankNode))]
    return sorted(found, key=str)


def _node_shape(store: ox.Store, node: ox.NamedNode | ox.BlankNode) -> NodeShape:
    stated = _stated(store, node)
    left_out = _beyond(stated, _NODE_WORDS - {"closed", "ignoredProperties"})
    targets = [_folded(value.value) for value in stated.get("targetClass", []) if isinstance(value, ox.NamedNode)]
    if not targets and isinstance(node, ox.NamedNode):
        targets = [_folded(node.value)]
    properties: list[PropertyShape] = []
    for value in stated.get("property", []):
        if isinstance(value, (ox.NamedNode, ox.BlankNode)) and not _is_off(parts := _stated(store, value)):
            left_out += _beyond(parts, _DESCRIBING | _KNOWN | {"flags"})
            along = parts.get("path", [])
            if len(along) == 1 and isinstance(along[0], ox.NamedNode):
                properties.append(_property_shape(store, parts, along[0].value))
            else:
                left_out.append("path")
    if _is_off(stated):
        return NodeShape((), ())
    return NodeShape(tuple(targets), tuple(properties), tuple(dict.fromkeys(left_out)))


def _is_off(stated: dict[str, list[object]]) -> bool:
    return any(_text(value) == "true" for value in stated.get("deactivated", []))


def _property_shape(store: ox.Store, stated: dict[str, list[object]], along: str) -> PropertyShape:
    flags = "(?i)" if any("i" in _text(value) for value in stated.get("flags", [])) else ""
    constraints = []
    for name in sorted(_KNOWN & stated.keys()):
        for value in stated[name]:
            values = tuple(_written(one) for one in _list(store, value)) if name == "in" else ()
            text = flags + _text(value) if name == "pattern" else _folded(_text(value))
            text = _written(value) if name == "hasValue" else text
            constraints.append(Constraint(name, text, values))
    severity: Severity = "error"
    for value in stated.get("severity", []):
        severity = _SEVERITY.get(_text(value), "error")
    message = next((_text(value) for value in stated.get("message", [])), "")
    return PropertyShape(_folded(along), tuple(constraints), severity, message)


def _stated(store: ox.Store, node: ox.NamedNode | ox.BlankNode) -> dict[str, list[object]]:
    """The values of SHACL's own properties, by local name."""
    stated: dict[str, list[object]] = {}
    for quad in store.quads_for_pattern(node, None, None):
        if quad.predicate.value.startswith(_SH):
            stated.setdefault(quad.predicate.value.removeprefix(_SH), []).append(quad.object)
    return stated


def _beyond(stated: dict[str, list[object]], known: frozenset[str]) -> list[str]:
    """Words of SHACL that the subset does not know."""
    return sorted(stated.keys() - known)


def _list(store: ox.Store, node: object) -> list[object]:
    found: list[object] = []
    while isinstance(node, ox.BlankNode):
        parts = {quad.predicate.value: quad.object for quad in store.quads_for_pattern(node, None, None)}
        found.append(parts.get(f"{RDF}first"))
        node = parts.get(f"{RDF}rest")
    return found


def _written(value: object) -> str:
    """A term in N-Triples, as statements have it."""
    return f"<{_folded(value.value)}>" if isinstance(value, ox.NamedNode) else str(value)


def _text(value: object) -> str:
    return value.value if isinstance(value, (ox.NamedNode, ox.Literal, ox.BlankNode)) else ""


def _folded(iri: str) -> str:
    return "http" + iri[5:] if iri.startswith("https://schema.org/") else iri
