"""Terms that do not exist, do not fit or are out of date, and values that their property does not expect.

Every statement costs one lookup in the properties of its item's kind (`ItemKind`); only what is not found there, or
needs a look at its value, costs more.
"""

from __future__ import annotations

import re
from functools import cached_property

from quadloom.documents.checks.items import Item, Items, Problem, Stated, Target, full_shape, local, text_of
from quadloom.documents.checks.value_checks import SCHEMES, ValueCheck
from quadloom.documents.checks.values import OTHER, XSD_RULES
from quadloom.documents.checks.vocabulary import PropertyTerm, Vocabularies, Vocabulary
from quadloom.documents.syntaxes.rdfa.hosts import INITIAL_PREFIXES
from quadloom.documents.syntaxes.terms import RDF, XSD

SCHEMA = "schema"
_MAX_PROBLEMS = 200
_GLUED = re.compile(r"<(https?://(?:www\.)?schema\.org)#?([A-Za-z]\w*)>\Z")
_SCHEME = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*):(?!//)")
_MORE_PREFIXES = {
    "dct": "http://purl.org/dc/terms/",
    "gs1": "https://gs1.org/voc/",
    "wgs": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "dcmitype": "http://purl.org/dc/dcmitype/",
}
# Prefixes of `<meta property>` that readers of Open Graph know without a declaration.
_OPEN_GRAPH = frozenset(
    ("og", "article", "book", "profile", "product", "music", "video", "fb", "al", "twitter", "place")
)
_OWN_SPACES = ("http://schema.org/", "https://schema.org/")
_XSD_AT = f'"^^<{XSD}'
_IGNORED = (f"<{RDF}", "<http://www.w3.org/2000/01/rdf-schema#", "<http://www.w3.org/2002/07/owl#")


def vocabulary_problems(
    items: Items, tables: Vocabularies, base: str, *, all_remarks: bool = True
) -> tuple[list[Problem], list[tuple[Item, str]]]:
    """Problems of all items, and the items that have a marked property (`PropertyTerm.marked`), with its name.

    Sets the items' kinds. `base` is the page's address. Without `all_remarks`, a remark about a property of a type is
    made once for the page.
    """
    described = [item for item in items.by_subject.values() if item.stated or item.types]
    for item in described:
        item.kind = tables.kinds[tuple(item.types)]
    check = _Check(items, tables, base, all_remarks)
    for item in described:
        check.item(item)
        if len(check.problems) >= _MAX_PROBLEMS:
            break
    check.schemes()
    return check.problems, check.marked


class _Check:
    def __init__(self, items: Items, tables: Vocabularies, base: str, all_remarks: bool) -> None:
        self.problems: list[Problem] = []
        self._add = self.problems.append
        self.marked: list[tuple[Item, str]] = []
        self._items = items
        self._all_remarks = all_remarks
        self._tables = tables
        self._base = base
        self._schema = tables.schema
        self._fragment = f"<{base.partition('#')[0]}#"
        self._folder = f"<{base.rpartition('/')[0]}/"
        self._schemes: dict[str, dict[str, Item]] = {}

    @cached_property
    def _values(self) -> ValueCheck:
        return ValueCheck(self._items, self._tables, self._base, self._add, all_remarks=self._all_remarks)

    def item(self, item: Item) -> None:
        kind = item.kind
        if kind.odd:
            for term in item.types:
                self._type(item, term)
        if kind.space:
            seen = self._schemes.get(item.syntax)
            if seen is None:
                seen = self._schemes[item.syntax] = {}
            if kind.space not in seen:
                seen[kind.space] = item
        known_here = kind.properties.get
        quiet, folder = self._tables.quiet, self._folder
        for one in item.stated:
            predicate, value, syntax = one
            known = known_here(predicate)
            is_text = value[0] == '"'
            if known is None:
                has_nothing = value[-1] != ">" if is_text else not value.startswith(folder)
                # Microdata without a type makes properties from the page's own address.
                if has_nothing and syntax != "microdata" and quiet[predicate]:
                    continue
                known = self._unfitting(item, one)
                if known is None:
                    continue
            elif is_text and known.plain:
                continue
            if known.superseded:
                self._superseded(item, Stated(*one), self._schema, known)
            if known.marked:
                self.marked.append((item, known.name))
            if is_text:
                self._values.text(item, one, known)
            else:
                self._values.thing(item, one, known)

    def _type(self, item: Item, term: str) -> None:
        found = self._tables.find(term[1:-1])
        if found is None:
            if not self._misplaced(item, term):
                self._prefix(item, term, None)
            return
        table, name = found
        if name in table.types:
            newer = table.superseded.get(name)
            if newer:
                message, advice = f"the type {name} is superseded by {newer}", f"write {newer}"
                self._add(
                    Problem(
                        item,
                        Stated("", term, item.syntax),
                        "type",
                        f"{table.code}-superseded",
                        "info",
                        message,
                        name,
                        newer,
                        advice,
                    )
                )
        elif table.types and name not in table.members and name not in table.datatypes:
            near = " or ".join(table.nearest_types(name))
            message = f"{name} is not a type of schema.org"
            if table.prefix != SCHEMA:
                message = f"{table.prefix}:{name} is not a type"
            advice = f"write {near}" if near else f"choose a type of {table.namespaces[0]}"
            self._add(
                Problem(
                    item,
                    Stated("", term, item.syntax),
                    "type",
                    f"{table.code}-unknown-type",
                    table.unknown,
                    message,
                    name,
                    near,
                    advice,
                )
            )

    def _misplaced(self, item: Item, term: str) -> bool:
        """A type of schema.org that lost its namespace: by a vocab without the slash, or without any @context."""
        name = local(term)
        glued = _GLUED.match(term)
        if glued is not None and glued[2] in self._schema.types:
            message = f"{glued[1]} lacks its slash, so that {glued[2]} is no type of schema.org"
            found, expected, advice = term[1:-1], f"https://schema.org/{glued[2]}", "write https://schema.org/"
        elif item.syntax == "jsonld" and not item.stated and term == f"{self._folder}{name}>":
            if name not in self._schema.types:
                return False
            message = f"{name} belongs to no vocabulary: @context is missing, and all properties are left out"
            found, expected, advice = name, "@context", 'add "@context": "https://schema.org"'
        else:
            return False
        self._add(
            Problem(
                item,
                Stated("", term, item.syntax),
                "type",
                "schema-namespace",
                "warning",
                message,
                found,
                expected,
                advice,
            )
        )
        return True

    def _unfitting(self, item: Item, one: tuple[str, str, str]) -> PropertyTerm | None:
        """A property that is not among those of the item's types: why; and its definition if a check goes on."""
        predicate, value, _ = one
        if value[0] == '"' and value[-1] != ">" and self._tables.silent[predicate]:
            return None
        stated = Stated(*one)
        found = self._tables.find(predicate[1:-1])
        if found is None:
            self._foreign(item, stated)
            return None
        table, name = found
        known = table.properties.get(name)
        if known is not None:
            if table is not self._schema:
                self._other(item, stated, table, known)
                return None
            shape = full_shape(item, self._schema)
            if shape and known.domains and not self._schema.fits(shape, known.domains | {"Role"}):
                self._wrong_domain(item, stated, known, shape)
            return known
        base, dash, end = name.rpartition("-")
        if dash and end in ("input", "output") and (base in table.properties or not base):
            return None
        if not table.properties or (table is self._schema and name in ("type", "id", "context")):
            return None
        near = " or ".join(table.nearest_properties(name, item.kind.shape or ()))
        message = f"{name} is not a property of {'schema.org' if table is self._schema else table.prefix}"
        advice = f"write {near}" if near else f"choose a property of {item.kind.type or 'the vocabulary'}"
        code = f"{table.code}-unknown-property"
        self._add(Problem(item, stated, "property", code, table.unknown, message, name, near, advice))
        return None

    def _wrong_domain(self, item: Item, stated: Stated, known: PropertyTerm, shape: tuple[str, ...]) -> None:
        message = f"{known.name} is not a property of {' or '.join(shape)}"
        found = f"{known.name} on {', '.join(shape)}"
        owners = self._schema.owners(known, shape)
        self._add(Problem(item, stated, "property", "schema-wrong-domain", "warning", message, found, *owners))

    def _superseded(self, item: Item, stated: Stated, table: Vocabulary, known: PropertyTerm) -> None:
        name = known.name if table is self._schema else f"{table.prefix}:{known.name}"
        message = f"{name} is superseded by {known.superseded}"
        code, advice = f"{table.code}-superseded", f"write {known.superseded}"
        self._add(Problem(item, stated, "property", code, "info", message, known.name, known.superseded, advice))

    def _other(self, item: Item, stated: Stated, table: Vocabulary, known: PropertyTerm) -> None:
        """A property of another vocabulary than schema.org."""
        if known.superseded:
            self._superseded(item, stated, table, known)
        if known.domains:
            types = tuple(
                found[1] for term in item.types if (found := self._tables.find(term[1:-1])) and found[0] is table
            )
            if types and len(types) == len(item.types) and not table.fits(types, known.domains):
                message = f"{known.name} is not a property of {' or '.join(types)}"
                expected = f"{known.name} on {', '.join(sorted(known.domains))}"
                code, advice = f"{table.code}-wrong-domain", "see the vocabulary for what this type has"
                self._add(Problem(item, stated, "property", code, "warning", message, known.name, expected, advice))
        if stated.value[0] == '"' and known.ranges and not known.data:
            expected = " or ".join(known.ranges)
            message = f"{known.name} is text, where {expected} is expected"
            code, advice = f"{table.code}-wrong-value", "describe the thing, or give its address"
            self._add(
                Problem(item, stated, "value", code, "info", message, text_of(stated.value)[:80], expected, advice)
            )
        self._foreign(item, stated)

    def _foreign(self, item: Item, stated: Stated) -> None:
        """What can be said about a statement in any vocabulary."""
        predicate, value, _ = stated
        if predicate.startswith(_IGNORED):
            return
        if self._tables.find(predicate[1:-1]) is None:
            self._prefix(item, predicate, stated)
        if value[0] != '"':
            self._values.relative_iri(item, stated)
            return
        rule = OTHER.get(predicate)
        if rule is None and value[-1] == ">" and (at := value.rfind(_XSD_AT)) > 0:
            rule = XSD_RULES.get(value[at + len(_XSD_AT) : -1])
        if rule is not None:
            self._values.rule(item, stated, rule)

    def _prefix(self, item: Item, term: str, stated: Stated | None) -> None:
        """A name such as `dct:subject` whose prefix nobody declared is read as an IRI of the scheme dct."""
        if stated is not None and stated.syntax == "microdata":
            if term.startswith(self._fragment):
                self._untyped(item, stated)
                return
            if item.types and term.startswith(item.types[0][:-1]):
                return  # a name made from the type, which is reported itself
        if term.startswith(("<http", "_:")) or term.startswith(_IGNORED):
            return
        match = _SCHEME.match(term)
        if match is None or match[1].lower() in SCHEMES:
            return
        prefix = match[1]
        if stated is not None and stated.syntax == "rdfa" and prefix.lower() in _OPEN_GRAPH:
            return
        space = INITIAL_PREFIXES.get(prefix.lower()) or _MORE_PREFIXES.get(prefix.lower(), "")
        message = f"the prefix of {term[1:-1]} is not declared"
        expected = f"{prefix}: {space}" if space else f"a declaration of {prefix}:"
        advice = _declaration(stated.syntax if stated else item.syntax, prefix, space or "http://…")
        target: Target = "property" if stated else "type"
        where = stated or Stated("", term, item.syntax)
        self._add(Problem(item, where, target, "prefix-undeclared", "error", message, term[1:-1], expected, advice))

    def _untyped(self, item: Item, stated: Stated) -> None:
        code = "microdata-untyped"
        if any(problem.code == code and problem.item is item for problem in self.problems):
            return
        message = "an item without itemtype: its properties belong to no vocabulary"
        expected = "itemtype with an absolute address"
        advice = 'add itemtype="https://schema.org/…" beside itemscope'
        self._add(
            Problem(item, stated, "property", code, "warning", message, local(stated.predicate), expected, advice)
        )

    def schemes(self) -> None:
        """One syntax of a page that writes schema.org's terms in more than one way, or in a way that is not its own."""
        for seen in self._schemes.values():
            if len(seen) == 1 and next(iter(seen)) in _OWN_SPACES:
                continue
            for space, item in seen.items():
                if "://www." in space:
                    message, right = f"{space} is not the namespace of schema.org", "https://schema.org/"
                    texts = message, space, right, f"write {right}"
                    self._add(
                        Problem(
                            item, Stated("", item.types[0], item.syntax), "type", "schema-namespace", "warning", *texts
                        )
                    )
            if "http://schema.org/" in seen and "https://schema.org/" in seen:
                item = list(seen.values())[1]
                message = "http://schema.org/ and https://schema.org/ on one page"
                advice = "write https://schema.org/ everywhere: queries compare names by character"
                texts = message, "both", "one of them", advice
                self._add(
                    Problem(item, Stated("", item.types[0], item.syntax), "type", "schema-mixed-scheme", "info", *texts)
                )


def _declaration(syntax: str, prefix: str, space: str) -> str:
    if syntax == "jsonld":
        return f'add "{prefix}": "{space}" to @context'
    if syntax == "rdfa":
        return f'add prefix="{prefix}: {space}" to an element above'
    return (
        "write the whole IRI: microdata has no prefixes" if syntax == "microdata" else f"declare {prefix}: as {space}"
    )
