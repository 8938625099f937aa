"""Correct descriptions have no defect, in any syntax; the same ones with a planted defect have it, with its line."""

from __future__ import annotations

import copy
import random
from typing import NamedTuple

import pytest

import quadloom
from quadloom.documents.checks.vocabulary import vocabularies
from quadloom.model.finding import Finding
from quadloom_lab.markup import SYNTAXES, Described, page
from unit.documents.checks.check_examples import EXAMPLES

URL = "https://shop.example/things/1"
TABLE = vocabularies().schema
# What a correct example may still be told: wishes of a profile, and that its page shows nothing of it.
WISHES = {
    "schema-missing-required",
    "schema-missing-recommended",
    "data-not-visible",
    "jsonld-term",
}  # the last: a URL template is no IRI


def findings(text: str) -> list[Finding]:
    return list(quadloom.transform(text.encode(), url=URL, content_type="text/html").findings)


def name(example: Described) -> str:
    return str(example["@type"])


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_correct_examples_have_no_defect(example: Described, syntax: str) -> None:
    found = findings(page(example, syntax))
    wrong = [one for one in found if one.severity != "info" and one.code not in WISHES]
    assert wrong == []


class Mutation(NamedTuple):
    code: str
    token: str  # on the line that the finding must name
    example: Described


def items_of(example: Described) -> list[Described]:
    found = [example]
    for value in example.values():
        if isinstance(value, dict):
            found += items_of(value)
    return found


def misspelt(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, max(2, len(word) - 1))
    kind = rng.randrange(3)
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + "q" + word[at:]
    return word[:at] + word[at : at + 2][::-1] + word[at + 2 :]


def mutations(seed: int) -> list[Mutation]:
    """One defect of each kind, planted at a random place of a random example where it fits."""
    rng = random.Random(seed)
    made: list[Mutation] = []
    for plant in (_type, _property, _domain, _date, _member, _prefix):
        for _ in range(200):
            example = copy.deepcopy(rng.choice(EXAMPLES))
            item = rng.choice(items_of(example))
            planted = plant(item, rng)
            if planted is not None:
                made.append(Mutation(planted[0], planted[1], example))
                break
    return made


def _type(item: Described, rng: random.Random) -> tuple[str, str] | None:
    if not isinstance(item["@type"], str):
        return None
    wrong = misspelt(item["@type"], rng)
    if wrong in TABLE.types or wrong in TABLE.members:
        return None
    item["@type"] = wrong
    return "schema-unknown-type", wrong


def _property(item: Described, rng: random.Random) -> tuple[str, str] | None:
    names = [name for name in item if not name.startswith("@") and "-" not in name]
    old = rng.choice(names) if names else ""
    wrong = misspelt(old, rng) if old else ""
    if not old or wrong in TABLE.properties or wrong in item:
        return None
    changed = {(wrong if name == old else name): value for name, value in item.items()}
    item.clear()
    item.update(changed)
    return "schema-unknown-property", wrong


def _domain(item: Described, rng: random.Random) -> tuple[str, str] | None:
    kinds = item["@type"]
    shape = tuple(kinds) if isinstance(kinds, list) else (str(kinds),)
    wrong = rng.choice(sorted(TABLE.properties))
    if (
        f"<http://schema.org/{wrong}>" in TABLE.shape(shape)
        or TABLE.fits(shape, frozenset(("Role",)))
        or "additionalType" in item
        or wrong in str(item)
    ):
        return None
    item[wrong] = "oddity"
    return "schema-wrong-domain", wrong


def _date(item: Described, rng: random.Random) -> tuple[str, str] | None:
    dated = [name for name in item if name in TABLE.properties and {"Date", "DateTime"} & TABLE.properties[name].data]
    dated = [name for name in dated if "Text" not in TABLE.properties[name].data]
    if not dated:
        return None
    wrong = rng.choice(["12 May 2026", "2026-13-01", "05/12/2026", "next Monday", "2026-02-30"])
    item[rng.choice(dated)] = wrong
    return "bad-date", wrong


def _member(item: Described, rng: random.Random) -> tuple[str, str] | None:
    closed = [
        name
        for name in item
        if (known := TABLE.properties.get(name)) and known.members and not known.data and not known.things
    ]
    if not closed:
        return None
    name = rng.choice(closed)
    wrong = misspelt(rng.choice(sorted(TABLE.properties[name].members)), rng)
    if wrong in TABLE.members or wrong in TABLE.types:
        return None
    item[name] = f"https://schema.org/{wrong}"
    return "schema-unknown-member", wrong


def _prefix(item: Described, rng: random.Random) -> tuple[str, str] | None:
    wrong = rng.choice(["gs1x:weight", "ours:size", "xyz:kind"])
    item[wrong] = "a value"
    return "prefix-undeclared", wrong


def check(mutation: Mutation, syntax: str) -> str:
    """What is wrong with the answer, or nothing."""
    text = page(mutation.example, syntax)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if mutation.token in line]
    found = [one for one in findings(text) if one.code == mutation.code]
    if not any(one.line in lines for one in found):
        return f"{mutation.code} {mutation.token} on {lines}: {[(one.line, one.found) for one in found]}\n{text}"
    return ""


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_every_planted_defect_is_found_with_its_line(syntax: str) -> None:
    wrong = [answer for seed in range(40) for one in mutations(seed) if (answer := check(one, syntax))]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("syntax", SYNTAXES)
def test_thousands_of_planted_defects_are_found(syntax: str) -> None:
    planted = [one for seed in range(1000, 1700) for one in mutations(seed)]
    wrong = [answer for one in planted if (answer := check(one, syntax))]
    assert len(wrong) <= len(planted) * 0.01, wrong[:5]
