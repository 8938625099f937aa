"""Checks of a SPARQL query before a parser sees it.

A recursive parser ends the process at about 5,000 nested parentheses or 20,000 UNIONs, so one linear scan checks
nesting and length first. The scan knows strings, comments, IRIs and names: `"SERVICE"` in a string is allowed, and
`SERVICE` as a keyword is refused, since it would make this machine query others.

SPARQL replaces `\\u0053` before it reads words, so the scan does the same, and only its result is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from quadloom.errors import QueryRefused
from quadloom.settings import LimitSettings

Form = Literal["select", "ask", "graph"]
MAX_UNIONS = 200

_CODEPOINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
# Linear: alternatives differ in their first character, and an unterminated string extends to the end of the text
# instead of being tried again from its second character. The parser refuses it anyway. A run of words and dots is a
# name if a colon follows; if not, `scan` divides it, since trying it again from its second word takes quadratic time.
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+|\#[^\r\n]*)
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    | (?P<string>\"{3}(?:[^"\\]|\\.|"(?!""))*(?:\"{3})?|'{3}(?:[^'\\]|\\.|'(?!''))*(?:'{3})?
        |"(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\\\r\n]|\\.)*'?)
    | (?P<variable>[?$]\w+)
    | (?P<name>(?:[^\W\d_][\w.-]*+)?:(?:[\w:.-]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%])*)
    | (?P<run>[^\W\d_][\w.-]*+)
    | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<word>\w+)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"\w+|.")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_FORBIDDEN = {
    "SERVICE": "a query must not ask other servers",
    "LOAD": "a query must not load documents",
}
_UPDATES = frozenset(("INSERT", "DELETE", "CLEAR", "DROP", "CREATE", "COPY", "MOVE"))
# `FILTER(?a<b:c)SERVICE:x#>` is an IRI to this scan and may be a comparison to a parser, which knows the context.
_FOREIGN = re.compile(r"(?i)service|load")
_FORMS: dict[str, Form] = {"SELECT": "select", "ASK": "ask", "CONSTRUCT": "graph", "DESCRIBE": "graph"}


class Token(msgspec.Struct, frozen=True):
    """`kind`: iri, string, variable, name, language, word or mark. `start` counts characters from 0."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class CheckedQuery(msgspec.Struct, frozen=True):
    """A query that the parser may see, with codepoint escapes replaced. `has_dataset`: it contains FROM."""

    text: str
    tokens: tuple[Token, ...]
    form: Form
    has_dataset: bool = False


def check(query: str, limits: LimitSettings) -> CheckedQuery:
    """Refuse a query that is too long, too deep or forbidden. Linear in its length. Raises `QueryRefused`."""
    if len(query.encode("utf-8", "replace")) > limits.query_length:
        raise QueryRefused(
            f"the query is longer than {limits.query_length} bytes",
            hint="put long lists of values into several queries, or raise limits.query_length",
        )
    text = _without_codepoints(query)
    tokens = tuple(scan(text))
    _check_nesting(tokens, limits.query_nesting)
    words = [token.text.upper() for token in tokens if token.kind == "word"]
    _check_words(words)
    if any(token.kind == "iri" and _is_ambiguous(token.text) for token in tokens):
        raise QueryRefused("an IRI could be read as a comparison", hint="put white space around < and >")
    form: Form = next((_FORMS[word] for word in words if word in _FORMS), "select")
    return CheckedQuery(text, tokens, form, "FROM" in words)


def _is_ambiguous(iri: str) -> bool:
    """A bracket, then such a word, then `#`. Three searches: a single expression took the cube of the length."""
    bracket = iri.find(")")
    word = _FOREIGN.search(iri, bracket) if bracket >= 0 else None
    return word is not None and "#" in iri[word.end() :]


def scan(text: str) -> list[Token]:
    """All tokens except white space and comments."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "run":
            tokens += _divided(match.group(), match.start())
        elif kind is not None and kind != "space":
            tokens.append(Token(kind, match.group(), match.start()))
    return tokens


def _divided(run: str, start: int) -> Iterator[Token]:
    """The words of a run, and the dots and hyphens between them."""
    for part in _PART.finditer(run):
        text = part.group()
        yield Token("mark" if text in ".-" else "word", text, start + part.start())


def template(text: str, variable: str) -> tuple[str, ...]:
    """The query, split at each use of a variable. Joining the parts with an IRI puts the IRI in its place."""
    parts: list[str] = []
    done = 0
    for token in scan(text):
        if token.kind == "variable" and token.text[1:] == variable:
            parts.append(text[done : token.start])
            done = token.end
    return (*parts, text[done:])


def place(text: str, position: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _without_codepoints(query: str) -> str:
    text = _CODEPOINT.sub(_character, query)
    if _CODEPOINT.search(text) and text != query:
        raise QueryRefused(
            "the query has a codepoint escape inside another one",
            hint="write the character itself, or one plain \\uXXXX",
        )
    return text


def _character(match: re.Match[str]) -> str:
    value = int(match.group(1) or match.group(2), 16)
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise QueryRefused(f"{match.group()} is not a character", hint="write the character itself")
    return chr(value)


def _check_nesting(tokens: tuple[Token, ...], limit: int) -> None:
    depth = 0
    for token in tokens:
        if token.kind != "mark":
            continue
        if token.text in _OPEN:
            depth += 1
            if depth > limit:
                raise QueryRefused(
                    f"brackets are nested more than {limit} deep", hint="write the query flatter: groups rarely need it"
                )
        elif token.text in _CLOSE:
            depth -= 1


def _check_words(words: list[str]) -> None:
    for word in words:
        if word in _FORBIDDEN:
            raise QueryRefused(
                f"{word} is not allowed: {_FORBIDDEN[word]}",
                hint="crawl or import the data first, then ask the warehouse",
            )
        if word in _UPDATES:
            raise QueryRefused(
                f"{word} is not allowed: queries only read",
                hint="the warehouse is filled by `quadloom crawl` and `quadloom import`",
            )
    if words.count("UNION") > MAX_UNIONS:
        raise QueryRefused(f"more than {MAX_UNIONS} UNIONs", hint="use VALUES for lists of alternatives")
