"""Profiles: which properties a type needs for a purpose, such as the rich results of search engines.

A profile is a TOML file; `rules/rich-results.toml` explains the format and is the one that is bundled. Users write
their own in the same way and name the file in `audit.profiles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from quadloom.documents.checks.items import Item, Items, Problem, Stated, local
from quadloom.documents.checks.values import EXPIRES
from quadloom.documents.checks.vocabulary import ItemKind, Vocabulary
from quadloom.documents.memo import Memo
from quadloom.errors import SettingsError
from quadloom.model.finding import Severity

FOLDER = Path(__file__).parent / "rules"
UNVERIFIED = "unverified"
_MAX_SHAPES = 1000  # kinds of items whose gaps are remembered: those of a template are always the same
_Shape = tuple[str, ...]
_Key = tuple[ItemKind, tuple[str, ...]]


class ProfileRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one type needs. See the head of rules/rich-results.toml."""

    type: str
    source: str
    date: str = ""
    by: str = ""
    feature: str = ""
    required: tuple[str, ...] = ()
    any_of: tuple[tuple[str, ...], ...] = ()
    recommended: tuple[str, ...] = ()
    within: str = ""
    top: bool = False
    home: bool = False
    retired: str = ""
    note: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Properties that count for eligibility."""
        return (*self.required, *(name for names in self.any_of for name in names))


class ProfileFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A profile as it is written."""

    name: str
    title: str = ""
    rule: tuple[ProfileRule, ...] = ()


class _Gap(NamedTuple):
    """What a rule misses on items of one kind. `paths` need a look at the values."""

    rule: ProfileRule
    required: tuple[_Missing, ...]
    recommended: _Missing | None
    paths: tuple[str, ...]
    only_recommends: bool  # nothing is required that could be missing, and no feature depends on it
    is_template: bool  # of what an action will take or give, and so not complete

    @property
    def says_anything(self) -> bool:
        return not self.only_recommends or self.recommended is not None


class _Missing(NamedTuple):
    """The parts of a problem that are the same for all items of a kind."""

    code: str
    severity: Severity
    message: str
    predicate: str
    expected: str
    advice: str

    def on(self, item: Item) -> Problem:
        stated = Stated(self.predicate, item.types[0], item.syntax)
        return Problem(item, stated, "item", self.code, self.severity, self.message, "", self.expected, self.advice)


class Profile:
    """The rules of one file, ready to be asked."""

    def __init__(self, file: ProfileFile) -> None:
        self.name = file.name
        self.title = file.title
        self.rules = file.rule
        self._by_type: dict[str, list[ProfileRule]] = {}
        for rule in file.rule:
            self._by_type.setdefault(rule.type, []).append(rule)
        self._actions: frozenset[str] | None = None
        self._by_shape = Memo(self._rules, _MAX_SHAPES)
        self._gaps: dict[_Key, tuple[_Gap, ...]] = {}  # by types and properties, as they are stated
        self._by_properties: dict[tuple[_Shape, frozenset[str]], tuple[_Gap, ...]] = {}

    def problems(
        self,
        items: Items,
        schema: Vocabulary,
        others: Sequence[Problem] = (),
        *,
        all_remarks: bool = True,
        at_home: bool = True,
    ) -> tuple[list[Problem], dict[str, bool]]:
        """What is missing, and the features that the page aims at with whether it is eligible for them.

        An item is eligible if it has all that is required, and `others` (what other checks found) has no error in one
        of these values. Without `all_remarks`, what is recommended is said once for items of one kind.
        `at_home`: the page is the site's root, to which recommendations of rules with `home` apply.
        """
        found: list[Problem] = []
        features: dict[str, bool] = {}
        remarked: set[int] = set()
        spoilt = self._spoilt(items, others, schema) if others else {}
        for item in items.by_subject.values():
            kind = item.kind
            if not kind.shape or not item.stated:  # without statements: a reference to what another page describes
                continue
            rules = self._by_shape[schema, kind.shape]
            if not rules:
                continue
            key = (kind, tuple([one[0] for one in item.stated]))
            gaps = self._gaps.get(key)
            if gaps is None:
                gaps = self._find_gaps(key, rules, item)
            for gap in gaps:
                if gap.only_recommends and not all_remarks and id(gap) in remarked:
                    continue
                rule = gap.rule
                if rule.top:
                    if not items.stands_alone(item):
                        continue
                elif rule.within and not _is_within(rule, items.holder(item), schema):
                    continue
                missing = gap.required
                if missing and (
                    gap.is_template or (item.subject in items.holders and self._is_in_action(item, items, schema))
                ):
                    continue
                if gap.paths:
                    missing += tuple(
                        _missing(item, rule, path, "required") for path in gap.paths if not _reaches(item, path, items)
                    )
                found += [one.on(item) for one in missing]
                if (
                    gap.recommended is not None
                    and (all_remarks or id(gap) not in remarked)
                    and (at_home or not rule.home)
                ):
                    remarked.add(id(gap))
                    found.append(gap.recommended.on(item))
                if rule.feature and not rule.retired:
                    eligible = not missing and (not spoilt or not _is_spoilt(rule, item, spoilt))
                    features[rule.feature] = features.get(rule.feature, False) or eligible
        return found, features

    def _spoilt(self, items: Items, others: Sequence[Problem], schema: Vocabulary) -> dict[str, set[str]]:
        """Required properties with an error in their value, by subject; an offer without a usable price spoils the
        `offers` of its product."""
        spoilt: dict[str, set[str]] = {}
        for problem in others:
            if problem.severity != "error" or problem.target != "value":
                continue
            item, name = problem.item, local(problem.stated.predicate)
            name = "price" if name == EXPIRES else name
            while any(name in rule.needs for rule in self._by_shape[schema, item.kind.shape or ()]):
                names = spoilt.setdefault(item.subject, set())
                held = items.holders.get(item.subject)
                if name in names or held is None:
                    names.add(name)
                    break
                names.add(name)
                item, name = held[0], local(held[1])
        return spoilt

    def _is_in_action(self, item: Item, items: Items, schema: Vocabulary) -> bool:
        if self._actions is None:
            self._actions = frozenset(name for name in schema.types if "Action" in schema.ancestors(name))
        return items.is_within(item, self._actions)

    def _find_gaps(self, key: _Key, rules: list[ProfileRule], item: Item) -> tuple[_Gap, ...]:
        """The same object for the same types and properties, in whatever order they are stated."""
        if len(self._gaps) > _MAX_SHAPES or len(self._by_properties) > _MAX_SHAPES:
            self._gaps.clear()
            self._by_properties.clear()
        alike = (item.kind.shape or (), frozenset(key[1]))
        gaps = self._by_properties.get(alike)
        if gaps is None:
            gaps = _without_repeats([gap for rule in rules if (gap := _gap(rule, item)).says_anything])
            self._by_properties[alike] = gaps
        self._gaps[key] = gaps
        return gaps

    def _rules(self, key: tuple[Vocabulary, _Shape]) -> list[ProfileRule]:
        """Those of an item's types, without those of a type above another that has rules."""
        schema, shape = key
        types = {name for one in shape for name in schema.ancestors(one) if name in self._by_type}
        nearest = [
            name for name in types if not any(other != name and name in schema.ancestors(other) for other in types)
        ]
        return [rule for name in sorted(nearest) for rule in self._by_type[name]]


def _without_repeats(gaps: list[_Gap]) -> tuple[_Gap, ...]:
    """The gaps without those that recommend only what another does: two vendors want the same."""
    names = [frozenset(gap.recommended.expected.split(", ") if gap.recommended else ()) for gap in gaps]
    return tuple(
        gap
        for place, gap in enumerate(gaps)
        if not (gap.only_recommends and any(names[place] < other for other in names))
        and not (gap.only_recommends and names[place] in names[:place])
    )


def _gap(rule: ProfileRule, item: Item) -> _Gap:
    has = item.names
    if rule.retired:
        return _Gap(rule, (), _retired(item, rule), (), only_recommends=True, is_template=False)
    required = [name for name in rule.required if "." not in name and name not in has]
    required += [" or ".join(names) for names in rule.any_of if has.isdisjoint(names)]
    recommended = ", ".join(name for name in rule.recommended if name.partition(".")[0] not in has)
    paths = tuple(name for name in rule.required if "." in name)
    return _Gap(
        rule,
        tuple(_missing(item, rule, name, "required") for name in required),
        _missing(item, rule, recommended, "recommended") if recommended else None,
        paths,
        not (required or paths or rule.feature),
        any(name.endswith(("-input", "-output")) for name in has),
    )


def _retired(item: Item, rule: ProfileRule) -> _Missing:
    announced = f", as announced on {rule.date}" if rule.date else ""
    since = announced if rule.retired == UNVERIFIED else f" since {rule.retired}"
    message = f"{rule.by or 'its maker'} no longer shows {rule.feature} results{since}"
    if rule.note:
        message += f", {rule.note}"
    return _Missing("rich-result-retired", "info", message, "", "", "keep it for other readers, or remove it")


def _missing(item: Item, rule: ProfileRule, name: str, wish: str) -> _Missing:
    purpose = f" for {rule.feature}" if rule.feature else ""
    if rule.by:
        purpose = f" by {rule.by}{purpose}"
    return _Missing(
        f"schema-missing-{wish}",
        "error" if wish == "required" else "info",
        f"{item.kind.type} has no {name}, {'which is' if ',' not in name else 'which are'} {wish}{purpose}",
        f"<http://schema.org/{name.split(' ')[0]}>" if wish == "required" else "",
        name,
        f"add {name}",
    )


def _is_spoilt(rule: ProfileRule, item: Item, spoilt: dict[str, set[str]]) -> bool:
    wrong = spoilt.get(item.subject)
    if not wrong:
        return False
    return not wrong.isdisjoint(rule.required) or any(item.names.intersection(one) <= wrong for one in rule.any_of)


def _is_within(rule: ProfileRule, holder: Item | None, schema: Vocabulary) -> bool:
    return (
        holder is not None
        and bool(holder.kind.shape)
        and schema.fits(holder.kind.shape or (), frozenset((rule.within,)))
    )


def _reaches(item: Item, path: str, items: Items) -> bool:
    """Whether a path with dots leads somewhere. A value that is described elsewhere is taken as complete."""
    name, dot, rest = path.partition(".")
    if not dot:
        return bool(item.values(name))
    values = item.values(name)
    return not values or any(
        (other := items.by_subject.get(value)) is None or _reaches(other, rest, items) for value in values
    )


def profiles(names: tuple[str, ...], folder: str = "") -> tuple[Profile, ...]:
    """Bundled profiles by name, others by the path of their file; a file of the name in `folder` takes the place of a
    bundled one. Raises `SettingsError`."""
    return tuple(_profile(name, folder) for name in names)


@lru_cache(maxsize=16)
def _profile(name: str, folder: str) -> Profile:
    places = [Path(place, f"{name}.toml") for place in (folder, FOLDER) if place and "/" not in name]
    path = next((place for place in places if place.exists()), Path(name))
    try:
        return Profile(msgspec.toml.decode(path.read_bytes(), type=ProfileFile))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml") if file.stem != "codes"))
        raise SettingsError(
            f"the profile {name} cannot be read: {getattr(error, 'strerror', None) or error}",
            hint=f"audit.profiles takes {known}, or the path of a file",
        ) from None
