"""The two records of JSON-LD context processing, `TermDefinition` and `ActiveContext`, and IRI expansion by them.

Both are named as in the specification. An `ActiveContext` is never changed once it has been handed out, so it can be
shared between documents: that is what makes schema.org's 3,000 terms affordable (a copy of the table costs a few
microseconds, defining every term again tens of milliseconds).
"""

from __future__ import annotations

import re
from typing import Final

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.errors import SyntaxInvalid

KEYWORDS = frozenset(
    [
        "@base",
        "@container",
        "@context",
        "@default",
        "@direction",
        "@embed",
        "@explicit",
        "@first",
        "@graph",
        "@id",
        "@import",
        "@included",
        "@index",
        "@json",
        "@language",
        "@list",
        "@nest",
        "@none",
        "@null",
        "@omitDefault",
        "@prefix",
        "@preserve",
        "@propagate",
        "@protected",
        "@requireAll",
        "@reverse",
        "@set",
        "@type",
        "@value",
        "@version",
        "@vocab",
    ]
)
_KNOWN = "|".join(sorted(keyword[1:] for keyword in KEYWORDS))
_UNKNOWN_KEY = rf'"(@(?!(?:{_KNOWN})")[A-Za-z]+)"\s*:'
UNKNOWN_KEY = re.compile(_UNKNOWN_KEY.encode())
"""A key that has the form of a keyword and is none, so that it is ignored."""
HAS_UNKNOWN_KEY = re.compile(_UNKNOWN_KEY).search
"""The same in text; it may find more."""
UNKNOWN_KEYWORD = "jsonld:unknown-keyword"
"""The sign of a page with such a key (`Context.signs`)."""


class Unset:
    """The one value `UNSET` means "no such entry"; JSON's null has a meaning of its own."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


def invalid(code: str, detail: object = None) -> SyntaxInvalid:
    """The specification's error `code`, with what caused it."""
    return SyntaxInvalid(code if detail is None else f"{code}: {str(detail)[:200]}", code=code)


class TermDefinition:
    """A term definition. `language`, `direction` and `context` are UNSET if the author said nothing."""

    __slots__ = (
        "base_url",
        "container",
        "context",
        "direction",
        "index",
        "iri",
        "language",
        "nest",
        "prefix",
        "protected",
        "reverse",
        "type",
    )

    def __init__(self, iri: str | None = None) -> None:
        self.iri = iri
        self.prefix = False
        self.protected = False
        self.reverse = False
        self.container: frozenset[str] = frozenset()
        self.type: str | None = None
        self.language: str | Unset | None = UNSET
        self.direction: str | Unset | None = UNSET
        self.context: Json | Unset = UNSET
        self.base_url: str | None = None
        self.index: str | None = None
        self.nest: str | None = None

    def same_as(self, other: TermDefinition) -> bool:
        """Equal in everything but protection: a protected term may be stated again, word for word."""
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "protected")


class ActiveContext:
    """An active context. Immutable by convention; `plans` is scratch space of `fast`."""

    __slots__ = ("base", "direction", "language", "original_base", "plans", "previous", "protects", "terms", "vocab")

    def __init__(self, base: str | None) -> None:
        self.base = base
        self.original_base = base
        self.vocab: str | None = None
        self.language: str | None = None
        self.direction: str | None = None
        self.terms: dict[str, TermDefinition] = {}
        self.previous: ActiveContext | None = None
        self.protects = False  # whether any term is protected
        self.plans: dict[str, object] = {}

    def copy(self) -> ActiveContext:
        other = ActiveContext.__new__(ActiveContext)
        other.base, other.original_base, other.vocab = self.base, self.original_base, self.vocab
        other.language, other.direction, other.previous = self.language, self.direction, self.previous
        other.terms, other.protects, other.plans = self.terms.copy(), self.protects, {}
        return other

    def rebased(self, base: str) -> ActiveContext:
        """The same terms seen from another page: only relative identifiers depend on the base."""
        other = ActiveContext(base)
        other.vocab, other.language, other.direction = self.vocab, self.language, self.direction
        other.previous, other.protects = self.previous, self.protects
        other.terms, other.plans = self.terms, self.plans
        return other

    def is_initial(self) -> bool:
        """Nothing defined yet, so that the result of a remote context depends on that context alone."""
        return not self.terms and self.vocab is None and self.language is None and self.direction is None

    def expand(self, value: str, *, relative: bool = False, vocab: bool = False) -> str | None:
        """IRI Expansion outside of context processing (section 5.2.2, without local context)."""
        if value in KEYWORDS:
            return value
        if value.startswith("@") and has_keyword_form(value):
            return None
        term = self.terms.get(value)
        if term is not None and (vocab or (term.iri is not None and term.iri in KEYWORDS)):
            return term.iri
        colon = value.find(":", 1)
        if colon > 0:
            if value.startswith("//", colon + 1) or value.startswith("_:"):
                return value
            prefix = self.terms.get(value[:colon])
            if prefix is not None and prefix.prefix and prefix.iri is not None:
                return prefix.iri + value[colon + 1 :]
            if jsonld_iri.has_iri_form(value):
                return value
        if vocab and self.vocab is not None:
            return self.vocab + value
        if relative and self.base is not None:
            return jsonld_iri.resolve(self.base, value)
        return value


def has_keyword_form(value: str) -> bool:
    """`@` and letters only: reserved for keywords to come, so it is ignored."""
    return len(value) > 1 and value[0] == "@" and value[1:].isascii() and value[1:].isalpha()
