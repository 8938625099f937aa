"""What the cells of a table show: the values of a thing along a path, with their sources."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyoxigraph as ox

from quadloom.asking.entity import graph_of
from quadloom.asking.sparql.prefixes import PREFIXES, shorten
from quadloom.asking.things.comparing import PRICES
from quadloom.asking.things.paths import BLANK, CURRENCIES, PropertyPath, best_name, canonical, comparable, term, words
from quadloom.stores.protocols.quads import QuadStore

_MAX_FACET_LENGTH = 80  # characters
_MAX_STATEMENTS = 300  # of one thing
_MAX_VALUES = 8  # of one cell
_MAX_NODES = 20  # parts of one thing that a path leads through

Node = ox.NamedNode | ox.Literal | ox.BlankNode | ox.Triple


class CellValue(msgspec.Struct, frozen=True):
    """One value: `text` as people read it, `iri` if it is a thing, and the pages that state it. `currency`: of a price,
    as stated beside it."""

    text: str
    iri: str = ""
    currency: str = ""
    language: str = ""
    sources: tuple[str, ...] = ()


class ValueCount(msgspec.Struct, frozen=True):
    """`count`: rows that the condition `is` leaves with this value. `label`: the value as people read it."""

    value: str
    count: int
    label: str = ""


class CellReader:
    """Reads the statements of a few things, each once."""

    def __init__(self, quads: QuadStore) -> None:
        self._quads = quads
        self._read: dict[str, list[tuple[str, Node, str]]] = {}

    def statements(self, node: str) -> list[tuple[str, Node, str]]:
        found = self._read.get(node)
        if found is None:
            lines = self._quads.match(f"<{node}>", None, None, None, _MAX_STATEMENTS)
            found = self._read[node] = [
                (canonical(quad.predicate.value), quad.object, graph)
                for quad in ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS, lenient=True)
                if not (graph := graph_of(quad)).startswith(PREFIXES["ql"])
            ]
        return found

    def label(self, node: str) -> str:
        names: dict[str, str] = {}
        for predicate, value, _ in self.statements(node):
            if isinstance(value, ox.Literal):
                names.setdefault(predicate, value.value)
        return best_name(names)

    def name(self, iri: str) -> str:
        """A thing as people call it: its label, or what can be read from its IRI."""
        return self.label(iri) or fallback_name(iri, [])

    def choice(self, text: str, is_iri: bool) -> ValueCount | None:
        """A value to choose: a thing by its name, or by its IRI if it has none. Parts without a name and long texts are
        no choices."""
        label = self.label(text) if is_iri and not _is_term(text) else ""
        if not text.strip() or (not label and text.startswith(BLANK)) or len(label or text) > _MAX_FACET_LENGTH:
            return None
        if _is_term(text):
            return ValueCount(words(text), 0, words(text))
        if is_iri and not label:
            return ValueCount(term(text).strip("<>"), 0, fallback_name(text, []))
        return ValueCount(label or text, 0, label or text)

    def cell(self, members: Sequence[str], path: PropertyPath) -> tuple[CellValue, ...]:
        found: dict[tuple[str, str], tuple[CellValue, dict[str, None]]] = {}
        currency = self._currency if path[-1].rpartition("/")[2] in PRICES else lambda _node: ""
        for node in self._nodes(members, path[:-1]):
            for predicate, value, graph in self.statements(node):
                if predicate == path[-1]:
                    shown = msgspec.structs.replace(self._shown(value), currency=currency(node))
                    is_plain = not shown.iri or shown.iri.startswith(BLANK) or _is_term(shown.iri)
                    key = (comparable(shown.text), shown.currency if is_plain else shown.iri)
                    found.setdefault(key, (shown, {}))[1][graph] = None
        return tuple(
            msgspec.structs.replace(value, sources=tuple(sources))
            for value, sources in list(found.values())[:_MAX_VALUES]
        )

    def _nodes(self, members: Sequence[str], path: PropertyPath) -> list[str]:
        nodes = list(members)
        for step in path:
            nodes = [
                value.value
                for node in nodes
                for predicate, value, _ in self.statements(node)
                if predicate == step and isinstance(value, ox.NamedNode)
            ][:_MAX_NODES]
        return nodes

    def _currency(self, node: str) -> str:
        said = {name: value.value for name, value, _ in self.statements(node) if isinstance(value, ox.Literal)}
        return next((said[iri] for iri in CURRENCIES if iri in said), "")

    def _shown(self, value: Node) -> CellValue:
        if isinstance(value, ox.Literal):
            text = value.value
            return CellValue(words(text) if _is_term(text) else text, language=value.language or "")
        if isinstance(value, ox.NamedNode):
            return CellValue(words(value.value) if _is_term(value.value) else self.name(value.value), value.value)
        return CellValue(str(value))


def _is_term(text: str) -> bool:
    """A member of an enumeration, written as a text: `https://schema.org/InStock`."""
    return text.startswith(("http://schema.org/", "https://schema.org/")) and " " not in text and len(text) > 20


def fallback_name(iri: str, pages: Sequence[str]) -> str:
    """A name for a thing without a label. Nobody should have to read the IRI of a blank node."""
    if iri.startswith(BLANK):
        return f"something on {_tail(pages[0])}" if pages else "unnamed"
    short = shorten(iri)
    return words(iri) if short != iri and not short.endswith(":") else _tail(iri)


def _tail(iri: str) -> str:
    """The last part of a URL that says something: `…/events/7-jazz-night#it` → `7-jazz-night`."""
    before, _, fragment = iri.partition("#")
    parts = [part for part in before.split("/") if part]
    tail = parts[-1] if parts else iri
    return f"{tail} {fragment}" if fragment and fragment not in ("it", "this", "me", "id") and len(parts) <= 2 else tail
