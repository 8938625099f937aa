"""Vocabularies as tables: which types, properties and members exist, and what a type's properties may hold.

A table is a text file with one term a line, its fields separated by tabs: kind (`type`, `property`, `member`,
`datatype`), name, parents of a type or member or domains of a property, ranges, and the term that replaces it. Lines
that begin with `#` name the prefix, the namespaces (the first is the canonical one), the family of finding codes and
the source. A property without domains fits every type; one without ranges takes every value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType

import msgspec

from quadloom.documents.checks.values import DATE_RULE, DURATION_RULE, MARKED, OTHER, SPECIAL, TIME_RULE, ValueRule
from quadloom.documents.memo import Memo
from quadloom.documents.syntaxes.source_positions import local_name
from quadloom.errors import SettingsError
from quadloom.model.finding import Severity

FOLDER = Path(__file__).parent / "vocabularies"
_MAX_SHAPES = 256  # sets of types whose properties are remembered
_MAX_TERMS = 4096  # the same for single terms
_LIKE = 0.7  # ratio of similar names
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_"
_COUNTED = 6  # how often a letter of a name has a bit of its own
_ANYWHERE = frozenset(("Role", "Enumeration"))
_WRITTEN = frozenset(("Text", "URL", "Number", "Boolean", "Date", "DateTime", "Time", "DataType"))
_BASIC = frozenset(("Text", "Number", "Boolean", "Date", "DateTime", "Time"))


class PropertyTerm(msgspec.Struct, frozen=True, gc=False):
    """A property. `things`: types that a value may have; `members`: names that an enumeration allows."""

    name: str
    domains: frozenset[str]
    ranges: tuple[str, ...]
    data: frozenset[str]  # basic datatypes among its ranges, Integer and Float as Number, plus URL
    things: frozenset[str]
    enumerations: frozenset[str]
    members: frozenset[str]
    superseded: str = ""
    plain: bool = False  # any text is right, and nothing else is to be said about it
    rule: ValueRule | None = None  # what a text must be
    wants_thing: bool = False  # a text is allowed, but says less
    marked: bool = False  # items that have it are worth a look as a whole; see `consistency`


class ItemKind(msgspec.Struct, frozen=True, eq=False):
    """What is the same for all items with the same types: pages of one template have few kinds.

    `type`: the local name of the first type. `shape`: names of the types in schema.org; None = one of them is unknown
    or of another vocabulary, so that properties of others are no surprise; empty = no type is stated. `properties`:
    those of schema.org that such an item may have, by their terms; all of them if the types do not limit them. `odd`:
    whether there is something to say about the types. `space`: the namespace of the first type in schema.org, as it is
    written.
    """

    type: str = ""
    shape: tuple[str, ...] | None = None
    properties: Mapping[str, PropertyTerm] = MappingProxyType({})
    odd: bool = False
    space: str = ""


class Vocabulary:
    """One table. Names are local: `Event`, not its IRI."""

    def __init__(self, text: str, origin: str) -> None:
        self.prefix = ""
        self.code = "vocabulary"
        self.unknown: Severity = "error"
        self.namespaces: list[str] = []
        self.types: dict[str, tuple[str, ...]] = {}
        self.superseded: dict[str, str] = {}
        self.members: dict[str, tuple[str, ...]] = {}
        self.datatypes: set[str] = set()
        self.properties: dict[str, PropertyTerm] = {}
        self._ancestors: dict[str, frozenset[str]] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._by_enumeration: dict[str, list[str]] = {}  # members by each type above them
        self._by_domain: dict[str, list[int]] = {}  # places of properties by domain, "" for those that fit every type
        self._shapes = Memo(self._shape, _MAX_SHAPES)
        self._accepted = Memo(self._accepts, _MAX_TERMS)
        # To compare one name with all of them takes milliseconds, and a template repeats its mistakes.
        self._near_types: Memo[str, list[str]] = Memo(lambda name: self._all_types.find(name), _MAX_TERMS)
        self._near_properties = Memo(self._nearest_properties, _MAX_TERMS)
        self._near_members = Memo(self._nearest_members, _MAX_TERMS)
        self._owners = Memo(self._owners_of, _MAX_TERMS)
        self._read(text, origin)

    def _read(self, text: str, origin: str) -> None:
        stated: list[list[str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("#"):
                self._head(line[1:].split())
                continue
            if not line.strip():
                continue
            kind, name, above, ranges, newer = (*line.split("\t"), "", "", "", "")[:5]
            if kind == "type":
                self.types[name] = tuple(above.split())
            elif kind == "member":
                self.members[name] = tuple(above.split())
            elif kind == "datatype":
                self.datatypes.add(name)
            elif kind == "property":
                stated.append([name, above, ranges, newer])
            else:
                raise SettingsError(
                    f"{origin}, line {number}: {kind!r} is no kind of term",
                    hint="begin each line with type, property, member or datatype, then a tab",
                )
            if newer:
                self.superseded[name] = newer
        if not self.namespaces:
            raise SettingsError(f"{origin} names no namespace", hint="begin the file with: # namespace http://…")
        for name, above, ranges, newer in stated:
            self.properties[name] = self._property(name, above.split(), ranges.split(), newer)

    def _head(self, words: list[str]) -> None:
        match words:
            case ["prefix", prefix]:
                self.prefix = prefix
            case ["namespace", namespace]:
                self.namespaces.append(namespace)
            case ["code", code]:
                self.code = code
            case ["unknown", ("info" | "warning" | "error") as severity]:
                self.unknown = severity

    def _property(self, name: str, domains: list[str], ranges: list[str], newer: str) -> PropertyTerm:
        data: set[str] = set()
        things: set[str] = set()
        enumerations: set[str] = set()
        for kind in ranges:
            above = self.ancestors(kind)
            basic = _BASIC & above
            if kind == "URL":
                data.add("URL")
            elif basic or kind in self.datatypes:
                data |= basic or {"Text"}
            elif "Enumeration" in above:
                enumerations.add(kind)
            else:
                things.add(kind)
        members = self._members_of(enumerations)
        is_text = "Text" in data and not members  # a text may be the address of a member
        return PropertyTerm(
            name,
            self._shared(domains),
            tuple(ranges),
            self._shared(data),
            self._shared(things),
            self._shared(enumerations),
            self._shared(members),
            newer,
            is_text and not newer and name not in SPECIAL and name not in MARKED,
            _rule(name, data, things),
            # `5 km` and `270 calories` are how schema.org writes quantities.
            not data and bool(things) and not any("Quantity" in self.ancestors(kind) for kind in things),
            name in MARKED,
        )

    def _shared(self, names: Iterable[str]) -> frozenset[str]:
        """The one set of these names: few differ, and Python's collector visits each."""
        found = frozenset(names)
        return self._sets.setdefault(found, found)

    def _members_of(self, enumerations: set[str]) -> frozenset[str]:
        if not enumerations:  # as for most properties
            return frozenset()
        if not self._by_enumeration:
            for member, of in self.members.items():
                for kind in frozenset().union(*map(self.ancestors, of)):
                    self._by_enumeration.setdefault(kind, []).append(member)
        return frozenset(member for kind in enumerations for member in self._by_enumeration.get(kind, ()))

    def ancestors(self, name: str) -> frozenset[str]:
        """A type, its parents, and theirs."""
        known = self._ancestors.get(name)
        if known is None:
            found = {name}
            pending = [name]
            while pending:
                for parent in self.types.get(pending.pop(), ()):
                    if parent not in found:
                        found.add(parent)
                        pending.append(parent)
            known = frozenset(found)
            if name in self.types:
                self._ancestors[name] = known
        return known

    def shape(self, types: tuple[str, ...]) -> dict[str, PropertyTerm]:
        """All properties of things that have these types, by their terms in N-Triples, in every namespace."""
        return self._shapes[types]

    def _shape(self, types: tuple[str, ...]) -> dict[str, PropertyTerm]:
        fitting = self._fitting(frozenset(("",)).union(*(self.ancestors(name) for name in types)))
        return {f"<{space}{one.name}>": one for space in self.namespaces[:2] for one in fitting}

    def _fitting(self, domains: frozenset[str]) -> list[PropertyTerm]:
        """Properties with one of the domains, in the order of the table. Looked up by domain: a site has dozens of
        sets of types, and the table 1,500 properties."""
        terms = list(self.properties.values())
        if not self._by_domain:
            for place, one in enumerate(terms):
                for domain in one.domains or ("",):
                    self._by_domain.setdefault(domain, []).append(place)
        places = {place for domain in domains for place in self._by_domain.get(domain, ())}
        return [terms[place] for place in sorted(places)]

    def all_terms(self) -> dict[str, PropertyTerm]:
        """All properties in the same form, for things whose types do not limit them."""
        spaces = self.namespaces[:2]
        return {f"<{space}{name}>": one for space in spaces for name, one in self.properties.items()}

    def fits(self, types: tuple[str, ...], wanted: frozenset[str]) -> bool:
        """Whether one of the types is a wanted one or below it."""
        return any(not wanted.isdisjoint(self.ancestors(name)) for name in types)

    def accepts(self, of: PropertyTerm, types: tuple[str, ...]) -> bool:
        """Whether a property takes things with these types. A Role may stand before any value."""
        return self._accepted[of.name, types]

    def _accepts(self, key: tuple[str, tuple[str, ...]]) -> bool:
        of, types = self.properties[key[0]], key[1]
        wanted = of.things | of.enumerations
        return (
            not of.ranges
            or "Thing" in wanted
            or self.fits(types, wanted | _ANYWHERE)
            or any(not _WRITTEN.isdisjoint(self.ancestors(name)) for name in types)
        )

    def nearest_types(self, name: str) -> list[str]:
        return self._near_types[name]

    def nearest_properties(self, name: str, types: tuple[str, ...]) -> list[str]:
        """Real names like this one, first among those that the types have."""
        return self._near_properties[name, types]

    def _nearest_properties(self, key: tuple[str, tuple[str, ...]]) -> list[str]:
        name, types = key
        own = [one.name for one in self.shape(types).values()] if types else []
        return SimilarNames(own).find(name) or self._all_properties.find(name)

    @cached_property
    def _all_types(self) -> SimilarNames:
        return SimilarNames(self.types)

    @cached_property
    def _all_properties(self) -> SimilarNames:
        return SimilarNames(self.properties)

    def nearest_members(self, name: str, of: PropertyTerm) -> list[str]:
        return self._near_members[name, of.name]

    def _nearest_members(self, key: tuple[str, str]) -> list[str]:
        return SimilarNames(sorted(self.properties[key[1]].members)).find(key[0])

    def owners(self, of: PropertyTerm, types: tuple[str, ...]) -> tuple[str, str]:
        """What is expected of a property that these types do not have, and what to do: the types that have it, and
        properties with similar names that these types have."""
        return self._owners[of.name, types]

    def _owners_of(self, key: tuple[str, tuple[str, ...]]) -> tuple[str, str]:
        name, types = key
        domains, own = sorted(self.properties[name].domains), self.shape(types)
        near = [one for one in self.nearest_properties(name, types) if f"<{self.namespaces[0]}{one}>" in own]
        return (
            f"{name} on {', '.join(domains[:6])}{' …' if len(domains) > 6 else ''}",
            (f"write {' or '.join(near)}, or " if near else "")
            + f"put it on {' or '.join(domains[:3])}{' …' if len(domains) > 3 else ''}",
        )


class SimilarNames:
    """Finds the names that are like a given one: the same but for case or a plural, else those of a ratio of .7 by
    `difflib`, whose answers these are.

    `difflib` counts the letters of every name, 3 ms for schema.org's. Here each name has a bit for its first, second …
    of each letter, so that the letters which two names share are counted by one operation.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._folded: dict[str, str] = {}
        for name in names:
            self._folded.setdefault(name.lower(), name)
        self._lettered: list[tuple[str, int, int, int]] = []  # name, its length, and as `_letters`

    def find(self, name: str) -> list[str]:
        wanted = name.lower()
        known = self._folded.get(wanted) or self._folded.get(wanted.removesuffix("s"))
        if known is not None:
            return [known]
        if not self._lettered:
            self._lettered = [(one, len(one), *_letters(one)) for one in self._folded]
        wanted = wanted[:60]
        length, (bits, others) = len(wanted), _letters(wanted)
        like = [
            one
            for one, size, its_bits, its_others in self._lettered
            if 2.0 * ((bits & its_bits).bit_count() + (others and min(others, its_others))) / (length + size) >= _LIKE
        ]
        return [self._folded[found] for found in get_close_matches(wanted, like, n=3, cutoff=_LIKE)]


def _letters(name: str) -> tuple[int, int]:
    """A bit for each letter of a lower-case name, and how many characters have none."""
    bits = others = 0
    seen: dict[str, int] = {}
    for letter in name:
        count = seen[letter] = seen.get(letter, -1) + 1
        place = _LETTERS.find(letter)
        if place >= 0 and count < _COUNTED:
            bits |= 1 << (place * _COUNTED + count)
        else:
            others += 1
    return bits, others


def _rule(name: str, data: set[str], things: set[str]) -> ValueRule | None:
    """The rule for a text, if dates, durations or the property's own meaning give one."""
    special = SPECIAL.get(name)
    if special is not None or "Text" in data:
        return special
    if not data:
        return DURATION_RULE if "Duration" in things else None
    if not data <= {"Date", "DateTime", "Time"}:  # merchantReturnDays takes a date or a number
        return None
    return TIME_RULE if "Time" in data else DATE_RULE


class Vocabularies:
    """All tables in use, by namespace."""

    def __init__(self, tables: list[Vocabulary]) -> None:
        self.tables = tables
        self._by_namespace = {space: table for table in tables for space in table.namespaces}
        self.schema = next(table for table in tables if table.prefix == "schema")
        self.kinds = Memo(self._kind, _MAX_SHAPES)
        """What is the same for all items with the same types, given as terms in N-Triples."""
        self.silent = Memo(self._is_silent, _MAX_TERMS)
        """Whether nothing can be said about a literal of a property, except by its own datatype: its vocabulary is
        another than schema.org and knows it, and there is no rule for it."""
        self.quiet = Memo(self._is_quiet, _MAX_TERMS)
        """The same for values of every kind, and also for properties of vocabularies that nobody described here."""
        self._type_names = Memo(self._schema_type, _MAX_TERMS)
        is_first = self._by_namespace[self.schema.namespaces[0]] is self.schema  # a user's own table may take its place
        self._unlimited = self.schema.all_terms() if is_first else {}

    def find(self, iri: str) -> tuple[Vocabulary, str] | None:
        """The table that an IRI (without brackets) belongs to, and its local name there."""
        cut = max(iri.rfind("/"), iri.rfind("#")) + 1
        table = self._by_namespace.get(iri[:cut])
        return (table, iri[cut:]) if table is not None else None

    def _kind(self, types: tuple[str, ...]) -> ItemKind:
        names = tuple(self._type_names[term] for term in types)
        shape = names if "" not in names else None
        space = next((term[1 : -1 - len(name)] for term, name in zip(types, names, strict=True) if name), "")
        return ItemKind(
            local_name(types[0]) if types else "",
            shape,
            self.schema.shape(shape) if shape else self._unlimited,
            odd=any(self._is_odd(term) for term in types),
            space=space,
        )

    def _is_odd(self, term: str) -> bool:
        """Whether there is something to say about a type: it is unknown or superseded, or its prefix is."""
        found = self.find(term[1:-1])
        if found is None:  # a known name may have lost its namespace
            return not term.startswith("<http") or "schema.org" in term or local_name(term) in self.schema.types
        table, name = found
        return name not in table.types or name in table.superseded

    def _schema_type(self, term: str) -> str:
        """The name of a type of schema.org, given as a term in N-Triples; empty = another one, or none."""
        found = self.find(term[1:-1])
        return found[1] if found is not None and found[0] is self.schema and found[1] in self.schema.types else ""

    def _is_silent(self, term: str) -> bool:
        found = self.find(term[1:-1])
        known = found[0].properties.get(found[1]) if found is not None else None
        return (
            found is not None
            and known is not None
            and found[0] is not self.schema
            and not (known.superseded or known.domains or known.ranges)
            and term not in OTHER
        )

    def _is_quiet(self, term: str) -> bool:
        is_foreign = term.startswith("<http") and term not in OTHER and self.find(term[1:-1]) is None
        return is_foreign or self.silent[term]


@lru_cache(maxsize=8)
def vocabularies(own: tuple[str, ...] = ()) -> Vocabularies:
    """The bundled vocabularies and those in the files `own`, which win. Raises `SettingsError`."""
    return Vocabularies([*_bundled(), *(_table(Path(path)) for path in own)])


@lru_cache(maxsize=1)
def _bundled() -> tuple[Vocabulary, ...]:
    return tuple(_table(path) for path in sorted(FOLDER.glob("*.tsv")))


def _table(path: Path) -> Vocabulary:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"the vocabulary {path} cannot be read: {error}", hint="check audit.vocabularies in quadloom.toml"
        ) from None
    return Vocabulary(text, str(path))
