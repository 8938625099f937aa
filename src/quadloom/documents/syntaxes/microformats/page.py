"""Finds the microformats of a page and builds their items, mf2 and classic in one pass.

A native selector finds elements whose class could name a root; Python looks only at what is below the outermost roots.
There it assigns every element with a class to its nearest root, by walking up to a known ancestor, so deep trees cost
no more than flat ones. Then it builds items from the assigned elements, to a limited depth.

Classic roots may include elements from elsewhere (`class=include`, `itemref`, table `headers`): those are assigned to
the root as well. Their number is capped, since n roots may include the same n elements.

An mf2 item whose author marked no name, photo or url has implied ones. Each of these rules looks at the item's element,
then at its only fitting child, then at the only fitting child of its only child.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from functools import lru_cache

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.memo import Memo
from quadloom.documents.syntaxes.microformats.classic import (
    ITEM,
    NAMES,
    ROOTS,
    ClassicVocabulary,
    Kind,
    Property,
    vocabulary_of,
)
from quadloom.documents.syntaxes.microformats.dates import date_of, is_clock
from quadloom.documents.syntaxes.microformats.values import (
    MicroformatItem,
    NestedItem,
    Picture,
    PropertyReader,
    Value,
    implied_name,
    implied_photo,
    implied_url,
    plain,
    raw_text_of,
    tag_of,
    tokens_of,
)

DEPTH_LIMIT = 32
INCLUDE_LIMIT = 50_000
_INCLUDE_COST = 50  # in elements: the native search of an included subtree, even if it finds nothing

_NAME = r"(?:[a-z0-9]+-)?[a-z]+(?:-[a-z]+)*"
_TYPE = re.compile(rf"h-{_NAME}\Z")
_PROPERTY = re.compile(rf"(p|u|dt|e)-({_NAME})\Z")
_KINDS: dict[str, Kind] = {"p": "p", "u": "u", "dt": "dt", "e": "e"}
_ORDER = tuple(_KINDS)
_MAX_REPEATS = 4  # of one name in a class attribute: each takes the text of its element
_MAX_CLASSES = 8192  # texts of class attributes whose meaning is remembered: about 5 MB
_PREFIXES = ("h-", *(f"{kind}-" for kind in _KINDS))
ANY_ROOT = '[class*="h-"],' + ",".join(f".{name}" for name in ROOTS)


class ClassNames:
    """What the text of a class attribute means. One is made per distinct text, since sites repeat theirs."""

    __slots__ = ("classic", "inert", "properties", "tokens", "types")

    def __init__(self, text: str, ignored: Set[str]) -> None:
        self.tokens = tokens_of(text)
        self.inert = NAMES.isdisjoint(self.tokens) and not any(token.startswith(_PREFIXES) for token in self.tokens)
        self.types: list[str] = []
        self.classic: list[str] = []
        self.properties: list[Property] = []
        if self.inert:  # as nearly all are
            return
        self.types = sorted({token for token in self.tokens if token not in ignored and _TYPE.match(token)})
        self.classic = sorted({ROOTS[token] for token in self.tokens if token in ROOTS}) if not self.types else []
        named = (match for token in self.tokens if (match := _PROPERTY.match(token)))
        found = Counter((_KINDS[match[1]], match[2]) for match in named)
        # What is stated twice is there twice. The order of the specification matters if prefixes share a name.
        repeated = [one for one, times in found.items() for _ in range(min(times, _MAX_REPEATS))]
        self.properties = sorted(repeated, key=lambda one: _ORDER.index(one[0]))
        self.inert = not self.types and not self.properties and NAMES.isdisjoint(self.tokens)


@lru_cache(maxsize=4)
def _meanings(ignored: frozenset[str]) -> Memo[str, ClassNames]:
    return Memo(lambda text: ClassNames(text, ignored), _MAX_CLASSES)


class _Root(msgspec.Struct, eq=False):
    """An element that is an item, and the elements assigned to it. `vocabulary` is None for mf2. `is_unnamed`: a
    classic property made it an item, without a root class."""

    node: LexborNode
    attributes: dict[str, str | None]
    types: list[str]
    vocabulary: ClassicVocabulary | None
    entries: list[_Entry] = []
    included: list[LexborNode] = []
    is_unnamed: bool = False
    by_reference: bool = False  # this element stands elsewhere and is brought in by an include


class _Entry(msgspec.Struct, eq=False):
    """An element that is a property of a root, an item inside it, or both."""

    node: LexborNode
    attributes: dict[str, str | None]
    properties: list[Property]
    tags: list[Property]  # whose value is the tag that a rel=tag link names
    root: _Root | None


class MicroformatPage:
    """The microformats of one parsed page. `selector` finds every element that may be a root; `ignored` are class names
    that look like roots and are not. `dropped` counts what the limits left out."""

    def __init__(
        self, tree: LexborHTMLParser, base: str, selector: str = ANY_ROOT, ignored: Set[str] = frozenset()
    ) -> None:
        self._tree = tree
        self._base = base
        self._selector = selector
        self._ignored = ignored
        self._ids: dict[str, LexborNode] | None = None
        self._meanings = _meanings(frozenset(ignored))
        self._marked: set[int] = set()
        self._included = 0
        self.dropped = 0

    def items(self) -> list[MicroformatItem]:
        outermost = self._outermost()
        if not outermost:
            return []
        for root in outermost:
            self._assign(root, root.node, 0, ())
        reader = PropertyReader(self._tree, self._base, self._marked)
        return [self._build(root, reader) for root in outermost]

    def _outermost(self) -> list[_Root]:
        found: list[_Root] = []
        inside: dict[int, bool] = {}
        for node in self._tree.css(self._selector):
            if node.mem_id in inside:
                continue
            root = self._root(node, node.attributes, None)
            if root is not None and not _is_inside(node, inside):
                found.append(root)
            if root is not None:
                inside[node.mem_id] = True
        return found

    def _root(
        self, node: LexborNode, attributes: dict[str, str | None], owner: _Root | None, level: int = 0
    ) -> _Root | None:
        meaning = self._meanings[attributes.get("class") or ""]
        if node.tag == "template":
            return None
        if meaning.types:
            return _Root(node, attributes, meaning.types, None)
        if meaning.classic:
            return _Root(node, attributes, meaning.classic, vocabulary_of(tuple(meaning.classic)))
        if owner is None or owner.vocabulary is None or level >= DEPTH_LIMIT:
            return None
        kinds = owner.vocabulary.items
        kind = next((kinds[token] for token in meaning.tokens if token in kinds), None)
        if kind is None or (kind != ITEM and self._has_root(node)):
            return None
        root = _Root(node, attributes, [kind], vocabulary_of((kind,)))
        root.is_unnamed = kind != ITEM
        return root

    def _has_root(self, node: LexborNode) -> bool:
        """Whether an item stands inside: it is the value then, in its own words."""
        inside = (
            self._meanings[found.attributes.get("class") or ""]
            for found in node.css("[class]")
            if found.mem_id != node.mem_id
        )
        return any(meaning.types or meaning.classic for meaning in inside)

    def _is_type(self, text: str) -> bool:
        return bool(self._meanings[text].types)

    def _assign(self, owner: _Root, start: LexborNode, depth: int, active: tuple[int, ...]) -> None:
        """Assign what is below `start` to `owner` and the roots found there; `active` are the includes in progress."""
        above: dict[int, tuple[_Root, int]] = {start.mem_id: (owner, depth)}
        seen: set[int] = set()
        roots = [owner] if start.mem_id == owner.node.mem_id else []
        nodes = start.css("[class],[rel]")
        if active:
            self._included += _INCLUDE_COST + len(nodes)
        known = self._meanings
        for node in nodes:
            attributes = node.attributes
            meaning = known[attributes.get("class") or ""]
            if meaning.inert and "rel" not in attributes:
                continue
            address = node.mem_id
            if address in seen or (address == start.mem_id and roots):
                continue
            seen.add(address)
            if address == start.mem_id:
                holder, level = owner, depth
            else:
                holder, level = _nearest(node, above)
            root = self._root(node, attributes, holder, level)
            if root is not None:
                root.by_reference = bool(active)
            properties, tags = self._properties(attributes, holder)
            if node.tag != "template" and (root is not None or properties or tags):
                if level >= DEPTH_LIMIT or self._included > INCLUDE_LIMIT:
                    self.dropped += 1
                    continue
                self._marked.add(address)
                holder.entries.append(_Entry(node, attributes, properties, tags, root))
                above[address] = (root or holder, level + 1)
                if root is not None:
                    roots.append(root)
            if holder.vocabulary is not None and "include" in meaning.tokens:
                self._include(holder, attributes.get("href") or attributes.get("data") or "", level, active)
        for root in roots:
            self._references(root, active)

    def _references(self, root: _Root, active: tuple[int, ...]) -> None:
        if root.vocabulary is None:
            return
        for name in ("itemref", "headers"):
            for reference in tokens_of(root.attributes.get(name) or ""):
                self._include(root, f"#{reference}", 1, active)

    def _include(self, holder: _Root, reference: str, depth: int, active: tuple[int, ...]) -> None:
        if not reference.startswith("#") or len(active) >= 8 or self._included > INCLUDE_LIMIT:
            return
        target = self._by_id(reference[1:])
        if target is None or target.mem_id in active or _contains(target, holder.node):
            return
        holder.included.append(target)
        self._assign(holder, target, depth, (*active, target.mem_id))

    def _by_id(self, name: str) -> LexborNode | None:
        if self._ids is None:
            self._ids = {}
            for node in self._tree.css("[id]"):
                self._ids.setdefault(node.attributes["id"] or "", node)
        return self._ids.get(name)

    def _properties(self, attributes: dict[str, str | None], owner: _Root) -> tuple[list[Property], list[Property]]:
        meaning = self._meanings[attributes.get("class") or ""]
        if owner.vocabulary is None:
            return meaning.properties, []
        properties = owner.vocabulary.properties(meaning.tokens)
        tags: list[Property] = []
        if "rel" in attributes and "href" in attributes:
            for relation, target in owner.vocabulary.relations(tokens_of(attributes["rel"] or "")):
                if target not in properties:
                    (tags if relation == "tag" else properties).append(target)
        return properties, tags

    def _build(self, root: _Root, reader: PropertyReader) -> MicroformatItem:
        item = MicroformatItem(root.types, root.attributes.get("id") or "", bare=not root.entries)
        item.by_reference = root.by_reference
        kinds: set[Kind] = set()
        nested = False
        dates = _Dates()
        for entry in root.entries:
            inner = self._build(entry.root, reader) if entry.root is not None else None
            if inner is not None and not entry.properties:
                item.children.append(inner)
            nested = nested or inner is not None
            for kind, name in entry.properties:
                kinds.add(kind)
                value = self._value(kind, entry, inner, root, reader)
                values = item.properties.setdefault(name, [])
                values.append(value)
                _remember(item, kind, name, value)
                if kind == "dt":
                    dates.complete(values)
            for _, name in entry.tags:
                item.properties.setdefault(name, []).append(tag_of(entry.attributes.get("href") or ""))
        if (root.vocabulary is None or root.is_unnamed) and not nested:
            self._imply(item, root, kinds)
        return item

    def _value(
        self, kind: Kind, entry: _Entry, inner: MicroformatItem | None, owner: _Root, reader: PropertyReader
    ) -> Value:
        if inner is None:
            value = self._plain(kind, entry, reader)
            # The suite gives classic formats the address alone.
            return value.value if owner.vocabulary is not None and isinstance(value, Picture) else value
        if kind == "e":
            markup = reader.markup(entry.node)
            return NestedItem(inner, markup.value, markup)
        named = inner.name if kind == "p" else inner.url if kind == "u" else None
        if named is not None:
            return NestedItem(inner, named if isinstance(named, Picture) else plain(named))
        if kind == "u" and "url" not in inner.properties:
            return NestedItem(inner, reader.url(entry.node, entry.attributes))
        if entry.root is not None and entry.root.included:
            return NestedItem(inner, "".join(map(raw_text_of, (entry.node, *entry.root.included))).strip())
        # A `url` that is not a u-* is no address of the item (unit test nested-microformat-mistyped): its text is kept.
        return NestedItem(inner, plain(self._plain("p" if kind == "u" else kind, entry, reader)))

    def _plain(self, kind: Kind, entry: _Entry, reader: PropertyReader) -> Value:
        if kind == "p":
            return reader.text(entry.node, entry.attributes)
        if kind == "u":
            return reader.url(entry.node, entry.attributes)
        if kind == "dt":
            return reader.date(entry.node, entry.attributes)
        return reader.markup(entry.node)

    def _imply(self, item: MicroformatItem, root: _Root, kinds: set[Kind]) -> None:
        if "name" not in item.properties and not kinds & {"p", "e"}:
            item.name = implied_name(root.node, self._is_type)
            item.properties["name"] = [item.name]
        if "u" in kinds:
            return
        if "photo" not in item.properties:
            photo = implied_photo(root.node, self._base, self._is_type)
            if photo is not None:
                item.properties["photo"] = [photo]
        if "url" not in item.properties:
            item.url = implied_url(root.node, self._base, self._is_type)
            if item.url is not None:
                item.properties["url"] = [item.url]


def _is_inside(node: LexborNode, inside: dict[int, bool]) -> bool:
    """Whether an ancestor is a root; every ancestor passed is remembered."""
    passed: list[int] = []
    answer = False
    current = node.parent
    while current is not None:
        known = inside.get(current.mem_id)
        if known is not None:
            answer = known
            break
        passed.append(current.mem_id)
        current = current.parent
    for address in passed:
        inside[address] = answer
    return answer


def _nearest(node: LexborNode, above: dict[int, tuple[_Root, int]]) -> tuple[_Root, int]:
    """The root that an element belongs to and its depth. The walk always ends: it starts below an assigned element."""
    passed: list[int] = []
    current = node.parent
    while current is not None and current.mem_id not in above:
        passed.append(current.mem_id)
        current = current.parent
    assert current is not None, "an element outside the subtree that it was found in"
    found = above[current.mem_id]
    for address in passed:
        above[address] = found
    return found


def _contains(outer: LexborNode, inner: LexborNode) -> bool:
    current: LexborNode | None = inner
    for _ in range(4096):  # an include deeper than this is refused rather than searched for a loop
        if current is None:
            return False
        if current.mem_id == outer.mem_id:
            return True
        current = current.parent
    return True


def _remember(item: MicroformatItem, kind: Kind, name: str, value: Value) -> None:
    if kind == "p" and name == "name" and item.name is None:
        item.name = value
    elif kind == "u" and name == "url" and item.url is None:
        item.url = value


class _Dates:
    """Gives a time without a date the date of the property before it, else of the next one that has a date."""

    __slots__ = ("_date", "_waiting")

    def __init__(self) -> None:
        self._date = ""
        self._waiting: list[tuple[list[Value], int]] = []

    def complete(self, values: list[Value]) -> None:
        value = values[-1]
        if not isinstance(value, str):
            return
        if is_clock(value):
            if self._date:
                values[-1] = f"{self._date} {value}"
            else:
                self._waiting.append((values, len(values) - 1))
            return
        self._date = date_of(value) or self._date
        if self._date:
            for waiting, place in self._waiting:
                waiting[place] = f"{self._date} {plain(waiting[place])}"
            self._waiting.clear()
