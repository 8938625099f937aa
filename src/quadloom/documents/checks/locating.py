"""From problems to findings: item path, line, column and the line of the source.

Places are found afterwards, by looking at the source again, so that pages without defects pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from quadloom.documents.checks.items import Items, Problem
from quadloom.documents.syntaxes.jsonld.source_positions import JsonldPlaces
from quadloom.documents.syntaxes.microdata.source_positions import MicrodataPlaces
from quadloom.documents.syntaxes.rdfa.source_positions import RdfaPlaces
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.source_positions import SourcePlace, StatementPlaces
from quadloom.model.finding import Finding

_WIDTH = 160  # characters of an excerpt
_BEFORE = 28  # of them before the column, in a long line: the place is in sight on a telephone too
_MAKERS: dict[tuple[str, str], Callable[[Context, int], StatementPlaces]] = {
    ("html", "jsonld"): JsonldPlaces,
    ("xhtml", "jsonld"): JsonldPlaces,
    ("jsonld", "jsonld"): JsonldPlaces,
    ("html", "microdata"): MicrodataPlaces,
    ("xhtml", "microdata"): MicrodataPlaces,
    ("html", "rdfa"): RdfaPlaces,
}


class _Place(NamedTuple):
    """Line and column from 1, the line of the source, and the column's place in that excerpt."""

    line: int
    column: int
    excerpt: str
    caret: int


_NOWHERE = _Place(0, 0, "", 0)


def located(context: Context, items: Items, problems: Iterable[Problem], blanks: Mapping[str, int]) -> list[Finding]:
    """Findings with their places. `blanks`: how many blank nodes there were before each syntax."""
    locator = _Locator(context, blanks)
    return [_finding(items, problem, locator.place(problem)) for problem in problems]


def unlocated(items: Items, problems: Iterable[Problem]) -> list[Finding]:
    """The same without places: for remarks."""
    return [_finding(items, problem, _NOWHERE) for problem in problems]


def _finding(items: Items, problem: Problem, place: _Place) -> Finding:
    return Finding(
        problem.code,
        problem.message,
        problem.severity,
        "transform",
        place.line,
        place.column,
        problem.advice,
        problem.syntax,
        items.path(problem.item, problem.predicate),
        problem.item.type,
        problem.found,
        problem.expected,
        place.excerpt,
        place.caret,
    )


class _Locator:
    def __init__(self, context: Context, blanks: Mapping[str, int]) -> None:
        self._context = context
        self._blanks = blanks
        self._places: dict[str, StatementPlaces | None] = {}

    def place(self, problem: Problem) -> _Place:
        """`_NOWHERE` if the source does not tell."""
        place = self._find(problem)
        if place is None:
            return _NOWHERE
        line, column = self._context.positions.at(place.start)
        excerpt, caret = excerpt_of(self._context.utf8, place.start)
        return _Place(line, column, excerpt, caret)

    def _find(self, problem: Problem) -> SourcePlace | None:
        syntax = problem.syntax
        if syntax not in self._places:
            self._places[syntax] = self._make(syntax)
        places = self._places[syntax]
        found = None
        if places is not None:
            found = places.find(problem.item.subject, problem.predicate, problem.value, problem.target)
        if found is None and problem.found and problem.target != "item":
            at = self._context.utf8.find(problem.found.encode("utf-8", "replace"))
            found = SourcePlace(at, at) if at >= 0 else None
        return found

    def _make(self, syntax: str) -> StatementPlaces | None:
        maker = _MAKERS.get((self._context.document.kind, syntax))
        if maker is None or syntax not in self._blanks:
            return None
        try:
            return maker(self._context, self._blanks[syntax])
        except Exception:  # noqa: BLE001 - a place is a convenience: without it the finding still stands
            return None


def excerpt_of(source: bytes, offset: int) -> tuple[str, int]:
    """The line around a place, cut if it is long, and the place in it from 1."""
    begin = max(source.rfind(b"\n", 0, offset) + 1, offset - 4 * _WIDTH)
    end = source.find(b"\n", offset)
    end = min(end if end >= 0 else len(source), offset + 4 * _WIDTH)
    before = source[begin:offset].decode("utf-8", "ignore").replace("\t", " ").replace("\r", "")
    after = source[offset:end].decode("utf-8", "ignore").replace("\t", " ").replace("\r", "")
    stripped = before.lstrip()
    if len(stripped) > _BEFORE:
        stripped = "…" + stripped[-_BEFORE:]
    text = stripped + after
    if len(text) > _WIDTH:
        text = text[: _WIDTH - 1] + "…"
    return text, len(stripped) + 1
