"""The two records of JSON-LD context processing, `TermDefinition` and `ActiveContext`, and IRI expansion by them.

Both are named as in the specification. An `ActiveContext` is never changed once it has been handed out, so it can be
shared between documents: that is what makes schema.org's 3,000 terms affordable (a copy of the table costs a few
microseconds, defining every term again tens of milliseconds).
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final

import msgspec

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.errors import SyntaxInvalid

KEYWORDS = frozenset((
    "@base", "@container", "@context", "@default", "@direction", "@embed", "@explicit", "@first", "@graph", "@id",
    "@import", "@included", "@index", "@json", "@language", "@list", "@nest", "@none", "@null", "@omitDefault",
    "@prefix", "@preserve", "@propagate", "@protected", "@requireAll", "@reverse", "@set", "@type", "@value",
    "@version", "@vocab",
))  # fmt: skip
_KNOWN = "|".join(sorted(keyword[1:] for keyword in KEYWORDS))
_UNKNOWN_KEY = rf'"(@(?!(?:{_KNOWN})")[A-Za-z]+)"\s*:'
UNKNOWN_KEY = re.compile(_UNKNOWN_KEY.encode())
"""A key that has the form of a keyword and is none, so that it is ignored."""
HAS_UNKNOWN_KEY = re.compile(_UNKNOWN_KEY).search
"""The same in text; it may find more."""
UNKNOWN_KEYWORD = "jsonld:unknown-keyword"
"""The sign of a page with such a key (`Context.signs`)."""
SUSPICIOUS = "jsonld:suspicious"
"""The sign of a page whose JSON-LD may have an empty value, an HTML entity or a keyword without @."""
IN_TEMPLATE = "jsonld:template"
"""The sign of a page with a script that is a template, in which JSON-LD would be lost."""
TEMPLATE_TYPES = frozenset(
    (
        "text/html", "text/plain", "text/template", "text/x-template", "text/ng-template", "text/x-tmpl",
        "text/x-handlebars", "text/x-handlebars-template", "text/x-mustache", "x-tmpl-mustache", "text/x-jquery-tmpl",
        "text/x-underscore-template",
    )
)  # fmt: skip


class Unset:
    """The one value `UNSET` means "no such entry"; JSON's null has a meaning of its own."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


def invalid(code: str, detail: object = None) -> SyntaxInvalid:
    """The specification's error `code`, with what caused it."""
    return SyntaxInvalid(code if detail is None else f"{code}: {str(detail)[:200]}", code=code)


class TermDefinition(msgspec.Struct, eq=False, gc=False):
    """A term definition. `language`, `direction` and `context` are UNSET if the author said nothing."""

    iri: str | None = None
    prefix: bool = False
    protected: bool = False
    reverse: bool = False
    container: frozenset[str] = frozenset()
    type: str | None = None
    language: str | Unset | None = UNSET
    direction: str | Unset | None = UNSET
    context: Json | Unset = UNSET
    base_url: str | None = None
    index: str | None = None
    nest: str | None = None

    def same_as(self, other: TermDefinition) -> bool:
        """Equal in everything but protection: a protected term may be stated again, word for word."""
        return all(
            getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "protected"
        )


class ActiveContext(msgspec.Struct, eq=False):
    """An active context. Immutable by convention; `plans` is scratch space of `fast`.

    `history`: the contexts that made it, in order, if all that it holds but the base depends on them alone.
    """

    base: str | None
    original_base: str | None
    vocab: str | None = None
    language: str | None = None
    direction: str | None = None
    terms: dict[str, TermDefinition] = {}
    previous: ActiveContext | None = None
    protects: bool = False  # whether any term is protected
    plans: dict[str, object] = {}
    history: tuple[Hashable, ...] | None = None

    @classmethod
    def initial(cls, base: str | None) -> ActiveContext:
        return cls(base, base, history=())

    def copy(self) -> ActiveContext:
        """One that may be changed."""
        return msgspec.structs.replace(self, terms=self.terms.copy(), plans={}, history=None)

    def rebased(self, base: str | None) -> ActiveContext:
        """The same terms seen from another page: only relative identifiers depend on the base."""
        if base == self.base:
            return self
        previous = None if self.previous is None else self.previous.rebased(base)
        return msgspec.structs.replace(self, base=base, original_base=base, previous=previous)

    def joined(self, later: ActiveContext) -> ActiveContext | None:
        """This context after `later`, which has nothing but a vocabulary and terms with absolute IRIs. None if that
        takes the whole algorithm: a term here is protected, or its name is an IRI, which the later one may use."""
        if self.protects:
            return None
        if not self.terms or self.terms is later.terms:
            shares = self.language is None
            terms, plans = later.terms, later.plans if shares else {}
        elif any("//" in name for name in self.terms):
            return None
        else:
            terms, plans = {**self.terms, **later.terms}, {}
        return msgspec.structs.replace(self, vocab=later.vocab, terms=terms, plans=plans, history=None)

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
