"""A mistake in a query, in a sentence: what is wrong, where, and what was probably meant.

The engine's own words are those of its grammar ("expected ENCODE_FOR_URI"): the first rule that it tried last. People
are told the word at which it stopped instead, and the name of a prefix that nobody declared.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from itertools import pairwise

from quadloom.asking.sparql.checks import Token, scan

_KEYWORDS = (
    "SELECT", "CONSTRUCT", "DESCRIBE", "ASK", "WHERE", "FILTER", "OPTIONAL", "UNION", "LIMIT", "OFFSET", "ORDER",
    "GROUP", "HAVING", "DISTINCT", "PREFIX", "BIND", "VALUES", "GRAPH", "FROM", "MINUS", "EXISTS", "REDUCED", "NAMED",
)  # fmt: skip
# Words that look like one of these and are right.
_OTHERS = frozenset(
    ("BASE", "BY", "AS", "ASC", "DESC", "NOT", "IN", "A", "TRUE", "FALSE", "MIN", "MAX", "BOUND", "ROUND")
)
_MAX_WORD = 40  # characters of the word that is shown


def explain_mistake(query: str, words: str, line: int, column: int, prefixes: Mapping[str, str]) -> str:
    """`words` are the engine's. `prefixes`: known without a declaration."""
    if "Prefix not found" in words:
        name = undeclared_prefix(query, prefixes)
        nearest = difflib.get_close_matches(name, list(prefixes), n=1)
        meant = f"; did you mean {nearest[0]}:?" if nearest else f"; add PREFIX {name}: <…> before the query"
        return f"unknown prefix {name}:{meant}" if name else "unknown prefix"
    misspelt = _misspelt(query)
    if misspelt is not None:
        word, meant = misspelt
        return f"“{word.text}” is not a word of SPARQL; did you mean {meant}?"
    found = word_at(query, line, column)
    if not found:
        return "the query ends too early; a closing brace or a part is missing"
    if words.startswith("expected"):
        return f"“{found}” cannot stand here"
    return words.split("\n")[0][:300]


def place_of_mistake(query: str, line: int, column: int) -> tuple[int, int]:
    """Line and column of the word that the explanation names: the engine often stops after it."""
    misspelt = _misspelt(query)
    if misspelt is None:
        return line, column
    before = query[: misspelt[0].start]
    return before.count("\n") + 1, misspelt[0].start - (before.rfind("\n") + 1) + 1


def _misspelt(query: str) -> tuple[Token, str] | None:
    """The first word that is no keyword, with the one that was probably meant."""
    for token in scan(query):
        word = token.text.upper()
        if token.kind == "word" and word not in _KEYWORDS and word not in _OTHERS:
            nearest = difflib.get_close_matches(word, _KEYWORDS, n=1, cutoff=0.75)
            if nearest:
                return token, nearest[0]
    return None


def undeclared_prefix(query: str, prefixes: Mapping[str, str]) -> str:
    """The first prefix that is used and neither declared nor known; empty if there is none."""
    tokens = scan(query)
    declared = {
        name.text.partition(":")[0]
        for word, name in pairwise(tokens)
        if word.kind == "word" and word.text.upper() == "PREFIX"
    }
    used = (token.text.partition(":")[0] for token in tokens if token.kind == "name" and ":" in token.text)
    return next((name for name in used if name not in declared and name not in prefixes and name != "_"), "")


def word_at(query: str, line: int, column: int) -> str:
    """The word at a place (counted from 1), or the one after it; empty at the end."""
    rows = query.split("\n")
    if not 1 <= line <= len(rows):
        return ""
    start = sum(len(row) + 1 for row in rows[: line - 1]) + max(0, column - 1)
    tokens = scan(query)
    token = next((found for found in tokens if found.end > start), None)
    if token is None:
        return ""
    return token.text if len(token.text) <= _MAX_WORD else token.text[: _MAX_WORD - 1] + "…"


def pointed_line(query: str, line: int, column: int) -> str:
    """The line of the mistake with a caret under its place; empty if there is no such line."""
    rows = query.split("\n")
    if not 1 <= line <= len(rows):
        return ""
    row = rows[line - 1].replace("\t", " ")
    begin = max(0, column - 61)
    return f"{row[begin : begin + 100]}\n{' ' * (max(1, column) - 1 - begin)}^"
