"""Which things a table shows, as SPARQL: the type, conditions on columns, an order.

The query is meant to be read: it is shown on the page and can be edited. User input enters it only as IRIs that were
checked and as literals that the engine itself wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec
import pyoxigraph as ox

from quadloom.asking.sparql.prefixes import both_schemes, expand
from quadloom.asking.things.comparing import SIGNS, Comparison, as_number, comparison, readable
from quadloom.asking.things.paths import (
    BLANK,
    CURRENCIES,
    NAMES,
    SCHEMA,
    PropertyPath,
    alternatives,
    parse_path,
    path_label,
    sparql_path,
    spellings,
    term,
    write_path,
)
from quadloom.asking.things.profile import PropertyColumn, TypeProfile
from quadloom.errors import UsageError

Operator = Literal["is", "contains", "above", "below", "from", "before", "exists", "missing", "not", "unreadable"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
# As people read and choose them; `unreadable` follows from a comparison.
OPERATOR_NAMES: dict[Operator, str] = {
    "is": "is", "not": "is not", "contains": "contains", "above": "is more than", "below": "is less than",
    "from": "is on or after", "before": "is before", "exists": "is given", "missing": "is missing",
}  # fmt: skip
_WITHOUT_VALUE = ("exists", "missing")
MOST_CONDITIONS = 10
_MAX_VALUE = 300  # characters of a value


class Condition(msgspec.Struct, frozen=True):
    path: PropertyPath
    operator: Operator
    value: str = ""

    def write(self) -> str:
        """As a parameter of an address, which `parse_condition` reads."""
        return f"{write_path(self.path)} {self.operator} {self.value}".rstrip()

    def describe(self) -> str:
        if self.operator == "unreadable":
            return f"{path_label(self.path)} cannot be compared with {self.value.partition(' ')[2]}"
        return f"{path_label(self.path)} {OPERATOR_NAMES[self.operator]} {self.value}".rstrip()

    def unreadable(self) -> Condition | None:
        """What selects the things whose values such a comparison leaves out; None = it is no comparison."""
        return Condition(self.path, "unreadable", f"{self.operator} {self.value}") if self.operator in SIGNS else None


class ThingSelection(msgspec.Struct, frozen=True, kw_only=True):
    """`types`: the spellings of the type and its subtypes in use; empty = both schemes of the type. `alone`: without
    its subtypes. `sort`: a column, or nothing for the store's order. `sites`: only things that at least as many sites
    describe. `present`: only things that a page describes which is still found."""

    type: str
    types: tuple[str, ...] = ()
    alone: bool = False
    conditions: tuple[Condition, ...] = ()
    sort: PropertyPath = ()
    descending: bool = False
    sites: int = 0
    present: bool = False

    @property
    def paths(self) -> tuple[PropertyPath, ...]:
        """All properties that it names."""
        return (*(condition.path for condition in self.conditions), *((self.sort,) if self.sort else ()))


def parse_condition(text: str) -> Condition:
    """`schema:location contains Ghent`. Raises `UsageError`."""
    path, _, rest = text.strip().partition(" ")
    operator, _, value = rest.strip().partition(" ")
    if operator not in OPERATORS:
        raise UsageError(
            f"not a condition: {text[:100]!r}", hint=f"write: property, one of {', '.join(OPERATOR_NAMES)}, value"
        )
    if operator not in _WITHOUT_VALUE and not value.strip():
        raise UsageError(f"the condition {text[:100]!r} has no value", hint="example: schema:location contains Ghent")
    return Condition(parse_path(path), operator, value.strip()[:_MAX_VALUE])


def type_pattern(types: Sequence[str], variable: str = "?type") -> str:
    """`variable` is bound if there are several types, or if it is another one: then the caller needs it."""
    if len(types) == 1 and variable == "?type":
        return f"?thing a {term(types[0])} ."
    return f"VALUES {variable} {{ {' '.join(map(term, types))} }} ?thing a {variable} ."


def where(selection: ThingSelection, profile: TypeProfile, known: frozenset[str]) -> str:
    """The group graph pattern, without its braces. `known`: IRIs of classes and properties in use."""
    lines = [f"  {type_pattern(selection.types or both_schemes(selection.type))}"]
    for number, condition in enumerate(selection.conditions[:MOST_CONDITIONS], 1):
        lines.append(_condition(condition, profile.column(condition.path), f"v{number}", known))
    return "\n".join(lines)


def select_things(
    selection: ThingSelection, profile: TypeProfile, known: frozenset[str], *, limit: int, offset: int = 0
) -> str:
    """The things, each once, in the chosen order; those without a value of the column come last."""
    pattern = where(selection, profile, known)
    page = f"LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
    if not selection.sort:
        return f"SELECT DISTINCT ?thing\nWHERE {{\n{pattern}\n}}\n{page}"
    column = profile.column(selection.sort)
    key = _sort_key(selection.sort, column, known)
    order = "DESC(?key)" if selection.descending else "(!BOUND(?key)) ?key"
    least = "MAX" if selection.descending else "MIN"
    return (
        f"SELECT ?thing ({least}(?value) AS ?key)\nWHERE {{\n{pattern}\n{key}\n}}\n"
        f"GROUP BY ?thing\nORDER BY {order} ?thing\n{page}"
    )


def select_values(
    selection: ThingSelection,
    columns: Sequence[PropertyColumn],
    profile: TypeProfile,
    known: frozenset[str],
    *,
    limit: int,
) -> str:
    """Thing, number of the column and value, of several columns at once; at most `limit` things are looked at. A number
    beyond the last column is for what stands inside of a value, which `is` finds too."""
    pattern = where(selection, profile, known)
    each = [
        f"{{ ?thing {sparql_path(column.path, known)} ?value . BIND({n} AS ?column) }}"
        for n, column in enumerate(columns)
    ]
    each += [
        f"{{ {_inside(column, known, 'value')} BIND({n} AS ?column) }}"
        for n, column in enumerate(columns, len(columns))
        if column.kind in ("part", "thing")
    ]
    parts = "\n  UNION ".join(each)
    return (
        f"SELECT DISTINCT ?thing ?column ?value\nWHERE {{\n  {{ SELECT DISTINCT ?thing WHERE {{\n{pattern}\n  }} "
        f"LIMIT {limit} }}\n  {parts}\n}}"
    )


def as_sparql(
    selection: ThingSelection, columns: tuple[PropertyPath, ...], profile: TypeProfile, known: frozenset[str]
) -> str:
    """A query for what the table shows, a row for each thing.

    Each column is a query of its own, since a thing with several values in several columns would have a row for each
    combination of them, of which there can be millions."""
    names = _variables(columns)
    things = type_pattern(selection.types or both_schemes(selection.type))
    parts = [
        _column_query(name, things, _shown_path(profile.column(path), known), profile.column(path))
        for path, name in zip(columns, names, strict=True)
    ]
    order = ""
    if selection.sort:
        key = _sort_key(selection.sort, profile.column(selection.sort), known).strip().removeprefix("OPTIONAL")
        least = "MAX" if selection.descending else "MIN"
        parts.append(
            f"  OPTIONAL {{ SELECT ?thing ({least}(?value) AS ?key) WHERE {{ {things} {key.strip(' {}')} }} "
            "GROUP BY ?thing }"
        )
        order = "\nORDER BY " + ("DESC(?key)" if selection.descending else "(!BOUND(?key)) ?key")
    head = "SELECT ?thing " + " ".join(f"?{name}" for name in names)
    inner = where(selection, profile, known).replace("\n", "\n  ")
    body = "\n".join([f"  {{ SELECT DISTINCT ?thing WHERE {{\n  {inner}\n  }} }}", *parts])
    return f"{head}\nWHERE {{\n{body}\n}}{order}\nLIMIT 1000"


def _column_query(name: str, things: str, path: str, column: PropertyColumn) -> str:
    """One value of a number or date, which pictures need; otherwise all."""
    if column.kind in ("number", "date"):
        value = "MIN(STR(?v))"
    else:
        value = 'GROUP_CONCAT(DISTINCT STR(?v); SEPARATOR=" | ")'
    return f"  OPTIONAL {{ SELECT ?thing ({value} AS ?{name}) WHERE {{ {things} ?thing {path} ?v }} GROUP BY ?thing }}"


def _variables(columns: tuple[PropertyPath, ...]) -> list[str]:
    names: list[str] = []
    for path in columns:
        base = "".join(mark for mark in path_label(path).title().replace(" ", "") if mark.isascii() and mark.isalnum())
        name = (base[:1].lower() + base[1:]) or "value"
        while name in (*names, "thing", "key", "value", "type", "v", "raw") or name[0].isdigit():
            name = f"x{name}" if name[0].isdigit() else f"{name}_"
        names.append(name)
    return names


def _shown_path(column: PropertyColumn, known: frozenset[str]) -> str:
    """Parts and other things are shown by their names."""
    path = sparql_path(column.path, known)
    if column.kind not in ("part", "thing"):
        return path
    return f"{path}/{alternatives(NAMES[0], known)}"


def _condition(condition: Condition, column: PropertyColumn, name: str, known: frozenset[str]) -> str:
    path = sparql_path(condition.path, known)
    match condition.operator:
        case "exists":
            return f"  FILTER EXISTS {{ ?thing {path} ?{name} }}"
        case "missing":
            return f"  FILTER NOT EXISTS {{ ?thing {path} ?{name} }}"
        case "not":
            values = _values(path, column, name, known)
            return f"  FILTER NOT EXISTS {{ {values} FILTER({_equal(name, condition.value)}) }}"
        case "is":
            test = _equal(name, condition.value)
        case "contains":
            test = f"CONTAINS(LCASE(STR(?{name})), {_literal(condition.value.lower())})"
        case "unreadable":
            operator, _, limit = condition.value.partition(" ")
            if operator not in SIGNS:
                raise UsageError(
                    f"not a comparison: {condition.value[:50]!r}", hint="write: unreadable from 2026-01-01"
                )
            compared = comparison(f"?{name}", condition.path, operator, limit, column.kind)
            values = _compared_values(path, column, name, compared, known)
            return f"  ?thing {path} ?{name}x . FILTER NOT EXISTS {{ {values} FILTER({compared.readable}) }}"
        case "above" | "below" | "from" | "before":
            compared = comparison(f"?{name}", condition.path, condition.operator, condition.value, column.kind)
            values = _compared_values(path, column, name, compared, known)
            return f"  {values}\n  FILTER({compared.readable} && {compared.test})"
    return f"  {_values(path, column, name, known)}\n  FILTER({test})"


def _compared_values(path: str, column: PropertyColumn, name: str, compared: Comparison, known: frozenset[str]) -> str:
    """A price with a currency stands beside it, in the same offer."""
    if not compared.currency:
        return _values(path, column, name, known)
    before, last = column.path[:-1], sparql_path(column.path[-1:], known)
    node = f"?{name}n" if before else "?thing"
    first = f"?thing {sparql_path(before, known)} {node} . " if before else ""
    currency = "|".join(alternatives(iri, known) for iri in CURRENCIES)
    wanted = _literal(compared.currency.upper())
    return f"{first}{node} {last} ?{name} ; {currency} ?{name}c . FILTER(UCASE(STR(?{name}c)) = {wanted})"


def _values(path: str, column: PropertyColumn, name: str, known: frozenset[str]) -> str:
    """Where the value may stand: in the column itself; inside of a part, two steps down; in the name of a thing."""
    direct = f"?thing {path} ?{name} ."
    return f"{{ {direct} }} UNION {_inside(column, known, name)}" if column.kind in ("part", "thing") else direct


def _inside(column: PropertyColumn, known: frozenset[str], name: str) -> str:
    path, names = sparql_path(column.path, known), ", ".join(map(term, spellings(NAMES, known)))
    node, inner = f"?{name}n", f"?{name}m"
    part = f'STRSTARTS(STR({node}), "{BLANK}")'
    return (
        f"{{ ?thing {path} {node} . {node} ?{name}p ?{name} . FILTER({part} || ?{name}p IN ({names})) }} UNION "
        f"{{ ?thing {path} {node} . {node} ?{name}p {inner} . {inner} ?{name}q ?{name} . "
        f'FILTER({part} && STRSTARTS(STR({inner}), "{BLANK}")) }}'
    )


def equal_texts(value: str) -> tuple[str, ...]:
    """What `is` takes for this value, in lower case: the text; the member of an enumeration that it names, as people
    read it, as an IRI and as a text (`event scheduled`, `EventScheduled`, `http://schema.org/EventScheduled`)."""
    text = value.strip().lower()
    iri = expand(value.strip()).lower()
    word = "".join(iri.rpartition("schema.org/")[2].split())
    member = (SCHEMA + word, *both_schemes(SCHEMA + word)[1:], word) if word.isalnum() else ()
    return tuple(dict.fromkeys((text, iri, *member)))


def _equal(name: str, value: str) -> str:
    return f"LCASE(STR(?{name})) IN ({', '.join(map(_literal, equal_texts(value)))})"


def _literal(text: str) -> str:
    return str(ox.Literal(text))


def _sort_key(path: PropertyPath, column: PropertyColumn, known: frozenset[str]) -> str:
    """What is no number, date or duration in a column of these has no place in the order, and comes last."""
    raw = f"?thing {_shown_path(column, known)} ?raw ."
    key = {"number": as_number("?raw"), "date": "STR(?raw)", "duration": "xsd:dayTimeDuration(STR(?raw))"}.get(
        column.kind, "LCASE(STR(?raw))"
    )
    only = f" FILTER({readable('?raw', 'date')})" if column.kind == "date" else ""
    return f"  OPTIONAL {{ {raw}{only} BIND({key} AS ?value) }}"
