"""Values that their property does not expect: things, texts, members of enumerations, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from quadloom.documents.checks.items import Item, Items, Problem, Stated, full_shape, local, text_of
from quadloom.documents.checks.values import (
    ValueRule,
    is_date,
    is_duration,
    is_misspelt_scheme,
    is_number,
    is_time,
    is_url,
)
from quadloom.documents.checks.vocabulary import PropertyTerm, Vocabularies
from quadloom.documents.syntaxes.rdfa.hosts import INITIAL_PREFIXES
from quadloom.model.finding import Severity

_SCHEMES_TEXT = (
    "urn tag info did doi ark oid ni cid mid geo isbn lex file about data mailto tel sms magnet bitcoin acct ipfs "
    "blob javascript view-source chrome gemini xmpp sip skype whatsapp fb maps market itms itms-apps"
)
SCHEMES = frozenset(_SCHEMES_TEXT.split())
"""Schemes of IRIs that are no undeclared prefixes."""
_LIKE_A_HOST = re.compile(
    r"(?:www\.[\w-]+\.|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|de|fr|co\.uk|io|info|eu|es|it|nl|at|ch|pl|jp|cn|br|ca|au)"
    r"[/>?#])"
)


_TYPED: dict[str, Callable[[str], bool]] = {
    "Number": is_number,
    "Boolean": lambda text: text.rpartition("/")[2].lower() in ("true", "false"),
    "Date": is_date,
    "DateTime": is_date,
    "Time": is_time,
}


@lru_cache(maxsize=256)
def _forms(data: frozenset[str]) -> tuple[Callable[[str], bool], ...]:
    """What a text may be, by the datatypes that a property takes."""
    return tuple(check for kind, check in _TYPED.items() if kind in data)


_TYPED_NAMES = {"Number": "a number", "Boolean": "true or false", "Date": "a date of ISO 8601", "Time": "a time"}


class ValueCheck:
    """Checks values of schema.org's properties; problems go to `add`."""

    def __init__(
        self, items: Items, tables: Vocabularies, base: str, add: Callable[[Problem], None], *, all_remarks: bool = True
    ) -> None:
        self._items = items
        self._tables = tables
        self._schema = tables.schema
        self._folder = f"<{base.rpartition('/')[0]}/"
        self._add = add
        self._remarked: set[tuple[str, str]] | None = None if all_remarks else set()

    def thing(self, item: Item, one: tuple[str, str, str], known: PropertyTerm) -> None:
        value = one[1]
        other = self._items.by_subject.get(value)
        if other is not None and other.types:
            shape = other.kind.shape
            if shape and not self._schema.accepts(known, shape):
                self._unaccepted(item, Stated(*one), known, other)
        elif value[0] == "<":
            if known.enumerations and (found := self._tables.find(value[1:-1])) and found[0] is self._schema:
                self._member(item, Stated(*one), known, found[1])
            elif value.startswith(self._folder):
                self.relative_iri(item, Stated(*one))
            elif "URL" in known.data and not value.startswith(("<http://", "<https://")):
                scheme = value[1:].partition(":")[0].lower()
                if scheme.startswith("http") or is_misspelt_scheme(scheme) or _is_prefix(value, scheme):
                    self._bad_url(item, Stated(*one), known, value[1:-1])

    def _unaccepted(self, item: Item, stated: Stated, known: PropertyTerm, other: Item) -> None:
        if stated.value[0] == "<" and "URL" in known.data:
            return  # an address may be that of a thing: `url` of an article is the page, whose type is WebPage
        types = full_shape(other, self._schema)
        if not types or self._schema.accepts(known, types):
            return
        expected = " or ".join(known.ranges)
        message = f"{known.name} is a {' and '.join(types)}, where {expected} is expected"
        advice = f"describe a {known.ranges[0]}" if known.things else f"write {expected}"
        self._wrong_value(item, stated, "warning", message, ", ".join(types), expected, advice)

    def _wrong_value(
        self, item: Item, stated: Stated, severity: Severity, message: str, found: str, expected: str, advice: str
    ) -> None:
        self._add(Problem(item, stated, "value", "schema-wrong-value", severity, message, found, expected, advice))

    def text(self, item: Item, one: tuple[str, str, str], known: PropertyTerm) -> None:
        """A text for a property that takes no text, or text of a certain form."""
        rule = known.rule
        if rule is not None:
            text = text_of(one[1]).strip()
            if not rule.accepts(text):
                self._broken(item, Stated(*one), rule, known.name, text)
            return
        if known.wants_thing and not known.enumerations:
            self._remark(item, one, known)
            return
        data = known.data
        if "Text" in data:
            if known.members and "//schema.org/" in one[1]:  # any text is right, but this one means a member
                self._address_of_member(item, Stated(*one), known)
            return
        text = text_of(one[1]).strip()
        if known.enumerations and not data:
            found = self._tables.find(text) if "://" in text else (self._schema, text.removeprefix("schema:"))
            if found is not None and found[0] is self._schema:  # members of other vocabularies are not known
                self._member(item, Stated(*one), known, found[1])
        elif forms := _forms(data):
            if not any(is_right(text) for is_right in forms) and not self._may_be(known, text):
                self._wrong_text(item, Stated(*one), known, text)
        elif "URL" in data and not is_url(text):
            self._bad_url(item, Stated(*one), known, text)

    def _address_of_member(self, item: Item, stated: Stated, known: PropertyTerm) -> None:
        found = self._tables.find(text_of(stated.value).strip())
        if found is not None and found[0] is self._schema:
            self._member(item, stated, known, found[1])

    def _may_be(self, known: PropertyTerm, text: str) -> bool:
        """Whether a text is a duration or the name of a member, where these are allowed beside a number."""
        if "Duration" in known.things and is_duration(text):
            return True
        return bool(known.members) and text.rpartition("/")[2] in known.members

    def _remark(self, item: Item, one: tuple[str, str, str], known: PropertyTerm) -> None:
        """A text in place of a thing, which would say more. The address of a thing is as good as the thing."""
        if one[1].startswith(('"http://', '"https://')):
            return
        if self._remarked is not None:
            key = (item.kind.type, one[0])
            if key in self._remarked:
                return
            self._remarked.add(key)
        expected = " or ".join(known.ranges)
        message = f"{known.name} is text, where {expected} is expected (allowed, but says less)"
        advice = f"describe a {known.ranges[0]} with its own properties"
        self._wrong_value(item, Stated(*one), "info", message, text_of(one[1]).strip()[:80], expected, advice)

    def _wrong_text(self, item: Item, stated: Stated, known: PropertyTerm, text: str) -> None:
        expected = " or ".join(_TYPED_NAMES[kind] for kind in _TYPED_NAMES if kind in known.data)
        message = f"{known.name} is text, where {expected} is expected"
        self._wrong_value(item, stated, "warning", message, text[:80], expected, f"write {expected}")

    def _bad_url(self, item: Item, stated: Stated, known: PropertyTerm, text: str) -> None:
        expected, advice = "an absolute address, https://…", "write the whole address, with https://"
        message = f"{known.name} is not a URL"
        self._add(Problem(item, stated, "value", "bad-url", "error", message, text[:120], expected, advice))

    def _member(self, item: Item, stated: Stated, known: PropertyTerm, name: str) -> None:
        """A member of an enumeration, by name. Enumerations whose members other vocabularies define are not checked."""
        schema = self._schema
        if not known.members or name in known.members or name in schema.types or name in schema.properties:
            return
        is_word = stated.value[0] == '"' and "://" not in stated.value
        if (known.data or known.things) and (is_word or name in schema.members):
            return
        kinds = " or ".join(sorted(known.enumerations))
        near = schema.nearest_members(name, known)
        if name in schema.members:
            message = f"{known.name}: {name} is not one of {kinds}"
            self._wrong_value(item, stated, "warning", message, name, kinds, f"choose a member of {kinds}")
            return
        names = near or sorted(known.members)
        message = f"{known.name}: {name[:60]!r} is not a member of {kinds}"
        expected = " or ".join(near or names[:5])
        advice = "write " + " or ".join(f"https://schema.org/{one}" for one in names[:3])
        self._add(
            Problem(item, stated, "value", "schema-unknown-member", "error", message, name[:80], expected, advice)
        )

    def rule(self, item: Item, stated: Stated, rule: ValueRule) -> None:
        """Hold a text to a rule."""
        text = text_of(stated.value).strip()
        if not rule.accepts(text):
            self._broken(item, stated, rule, local(stated.predicate), text)

    def _broken(self, item: Item, stated: Stated, rule: ValueRule, name: str, text: str) -> None:
        message, advice = f"{rule.message.format(name)}: {text[:60]!r}", f"write it as {rule.expected}"
        self._add(Problem(item, stated, "value", rule.code, rule.severity, message, text[:80], rule.expected, advice))

    def relative_iri(self, item: Item, stated: Stated) -> None:
        value = stated.value
        if value.startswith(self._folder) and _LIKE_A_HOST.match(value, len(self._folder)):
            written = value[len(self._folder) : -1]
            message = f"{local(stated.predicate)} lacks its scheme and is read as an address of this site"
            right = f"https://{written}"
            self._add(
                Problem(item, stated, "value", "iri-relative", "warning", message, written, right, f"write {right}")
            )


def _is_prefix(term: str, scheme: str) -> bool:
    """Whether an IRI is a name with a prefix that nobody declared, such as `foaf:Person`."""
    return scheme in INITIAL_PREFIXES and scheme not in SCHEMES and not term.startswith("//", len(scheme) + 2)
