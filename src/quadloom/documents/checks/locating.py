"""From problems to findings: item path, line, column and the line of the source.

Places are found afterwards, by looking at the source again, so that pages without defects pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from quadloom.documents.checks.items import Items, Problem
from quadloom.documents.syntaxes.jsonld.source_positions import JsonldPlaces
from quadloom.documents.syntaxes.microdata.source_positions import MicrodataPlaces
from quadloom.documents.syntaxes.rdfa.source_positions import RdfaPlaces
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.source_positions import StatementPlaces
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


def located(
    context: Context, items: Items, problems: Sequence[Problem], blanks: Mapping[str, int], remarks: int
) -> list[Finding]:
    """Findings with their places, as far as the source tells them; the last `remarks` of the problems without.
    `blanks`: how many blank nodes there were before each syntax."""
    known: dict[str, StatementPlaces | None] = {}
    findings = []
    for number, problem in enumerate(problems):
        item, (predicate, _, syntax) = problem.item, problem.stated
        finding = Finding(
            problem.code,
            problem.message,
            problem.severity,
            advice=problem.advice,
            syntax=syntax,
            path=items.path(item, predicate),
            type=item.kind.type,
            found=problem.found,
            expected=problem.expected,
        )
        if number < len(problems) - remarks:
            if syntax not in known:
                known[syntax] = _places(context, syntax, blanks)
            finding = placed(context, finding, _start(context, problem, known[syntax]))
        findings.append(finding)
    return findings


def placed(context: Context, finding: Finding, start: int) -> Finding:
    """A finding with the line, column and excerpt of an offset in the source; -1 = unknown."""
    if start < 0:
        return finding
    line, column = context.positions.at(start)
    excerpt, caret = _excerpt(context.utf8, start)
    return msgspec.structs.replace(finding, line=line, column=column, excerpt=excerpt, caret=caret)


def _start(context: Context, problem: Problem, places: StatementPlaces | None) -> int:
    """Where in the source a problem begins; -1 if that is unknown."""
    if places is not None:
        found = places.find(problem.item.subject, problem.stated.predicate, problem.stated.value, problem.target)
        if found is not None:
            return found.start
    if problem.found and problem.target != "item":
        return context.utf8.find(problem.found.encode("utf-8", "replace"))
    return -1


def _places(context: Context, syntax: str, blanks: Mapping[str, int]) -> StatementPlaces | None:
    maker = _MAKERS.get((context.document.kind, syntax))
    if maker is None or syntax not in blanks:
        return None
    try:
        return maker(context, blanks[syntax])
    except Exception:  # noqa: BLE001 - a place is a convenience: without it the finding still stands
        return None


def _excerpt(source: bytes, offset: int) -> tuple[str, int]:
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
