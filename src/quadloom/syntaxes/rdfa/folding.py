"""Property copying: `rdfa:copy` of an `rdfa:Pattern` (HTML+RDFa 1.1, section 3.5)."""

from __future__ import annotations

from quadloom.syntaxes.rdfa.frames import MAX_TRIPLES, Triple
from quadloom.syntaxes.rdfa.reporting import RDFA
from quadloom.syntaxes.terms import TYPE

COPY = f"<{RDFA}copy>"
PATTERN = f"<{RDFA}Pattern>"


def fold_patterns(triples: list[Triple]) -> list[Triple]:
    """The statements with every copied pattern in place of its reference. Patterns nobody refers to stay."""
    if not any(predicate == COPY for _, predicate, _ in triples):
        return triples
    patterns: dict[str, list[tuple[str, str]]] = {
        subject: [] for subject, predicate, value in triples if predicate == TYPE and value == PATTERN
    }
    for subject, predicate, value in triples:
        if subject in patterns and not (predicate == TYPE and value == PATTERN):
            patterns[subject].append((predicate, value))
    referred = {value for _, predicate, value in triples if predicate == COPY and value in patterns}
    folded: list[Triple] = []
    room = MAX_TRIPLES
    for triple in triples:
        subject, predicate, value = triple
        if subject in referred:
            continue
        if predicate == COPY and value in referred:
            copied = _copied(value, patterns, room)
            room -= len(copied)
            folded.extend((subject, *pair) for pair in copied)
        else:
            folded.append(triple)
    return folded


def _copied(pattern: str, patterns: dict[str, list[tuple[str, str]]], room: int) -> list[tuple[str, str]]:
    """What a pattern says, with the patterns that it copies in turn, each once."""
    found: list[tuple[str, str]] = []
    seen = {pattern}
    waiting = [pattern]
    while waiting and len(found) < room:
        for predicate, value in patterns[waiting.pop()]:
            if predicate != COPY or value not in patterns:
                found.append((predicate, value))
            elif value not in seen:
                seen.add(value)
                waiting.append(value)
    return found[:room]
