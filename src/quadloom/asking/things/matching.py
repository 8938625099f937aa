"""Which thing a name means: candidates with a score and the reasons for it, best first.

The words of the name find things (`quadloom.asking.things.found`); then each is compared as a whole, under all its
names and with all that any page states about it. Names may be turned round, abbreviated or misspelt. Descriptions that
sameAs joins are one candidate.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Sequence

import msgspec

from quadloom.asking.entity import Entity, describe_entity
from quadloom.asking.things.found import find_things
from quadloom.asking.things.paths import BLANK, NAMES, PART_TYPES, PropertyPath, canonical, comparable
from quadloom.asking.things.profile import label_of, statements_of
from quadloom.errors import NothingFound
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import SearchRequest, TextIndex

_COMPARED = 20  # things that the words find and that are compared
_SURE = 98.0  # of 100: all words are there
_LEAST = 30.0
_AHEAD = 3.0  # points that a sure candidate has before the next one
_SIMILAR = 0.75  # of two words that may be one, misspelt
_INITIAL = 0.7  # weight of a word given by its first letter
_OTHER_TYPE = 0.8  # factor for a thing of another type than was asked for
_MINOR = 0.9  # for a part of another thing, and for what is a page rather than a thing
_MOST_VALUES = 50
_NAME_PROPERTIES = frozenset(NAMES)
_IRI = re.compile(r'(https?|urn):[^<>"{}|\\^`\x00-\x20]+')
_WORD = re.compile(r"[^\W_]+")


class KnownValue(msgspec.Struct, frozen=True):
    """What is known about the thing besides its name: one of `texts` is a value of the property."""

    path: PropertyPath
    texts: tuple[str, ...]


class NameCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """`score`: 0 to 100. `match`: it is sure. `reasons`: what the score is made of."""

    entity: Entity
    name: str
    score: float
    match: bool = False
    reasons: dict[str, float | bool] = {}


def match_name(
    index: TextIndex,
    quads: QuadStore,
    name: str,
    *,
    types: Sequence[str] = (),
    known: Sequence[KnownValue] = (),
    limit: int = _COMPARED,
) -> list[NameCandidate]:
    """Candidates for a name, or for the IRI of a thing. `types`: all spellings and subtypes of the one that is wanted;
    if no thing of these types fits, things of others are candidates with lower scores."""
    if _IRI.fullmatch(name):
        try:
            entity = describe_entity(quads, name, consolidate=True)
        except NothingFound:
            return []
        return [NameCandidate(entity=entity, name=entity.label or name, score=100.0, match=True)]
    words = " ".join(_WORD.findall(name))
    if not words:
        return []
    request = SearchRequest(text=words, types=tuple(types), limit=_COMPARED)
    found = find_things(index, quads, request)
    if types and not any(similarity(name, thing.label) >= _SIMILAR for thing in found):
        found += find_things(index, quads, msgspec.structs.replace(request, types=()))
    scored: list[NameCandidate] = []
    seen: set[str] = set()
    for thing in found:
        if thing.iri not in seen:
            entity = describe_entity(quads, thing.iri, consolidate=True)
            seen.update(entity.names)
            scored.append(_candidate(quads, name, entity, types, known))
    scored.sort(key=lambda one: (-one.score, -len(one.entity.sources), one.entity.iri))
    return _with_match([one for one in scored if one.score >= _LEAST][: max(0, limit)])


def similarity(asked: str, name: str) -> float:
    """0 to 1: how alike two names are, word by word in any order. A long word counts more than a short one."""
    left, right = _words(asked), _words(name)
    if not left or not right:
        return 0.0
    if left == right:
        return 1.0
    rest, shared = list(right), 0.0
    for word in left:
        best = max(rest, key=lambda other: _alike(word, other), default="")
        if weight := _alike(word, best):
            rest.remove(best)
            shared += weight * (len(word) + len(best))
    return min(0.99, shared / sum(map(len, (*left, *right))))


def _words(text: str) -> list[str]:
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    return _WORD.findall(plain.casefold())


def _alike(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if not other or (len(one) == 1 or len(other) == 1):
        return _INITIAL if other and one[0] == other[0] else 0.0
    ratio = difflib.SequenceMatcher(None, one, other).ratio()
    return ratio if ratio >= _SIMILAR else 0.0


def _candidate(
    quads: QuadStore, asked: str, entity: Entity, types: Sequence[str], known: Sequence[KnownValue]
) -> NameCandidate:
    names = [
        statement.value.text
        for property in entity.properties
        if canonical(property.iri) in _NAME_PROPERTIES
        for statement in property.statements
        if statement.value.kind == "literal"
    ]
    name = max(names, key=lambda text: similarity(asked, text), default=entity.label)
    alike = similarity(asked, name)
    reasons: dict[str, float | bool] = {"name_similarity": round(100 * alike, 1), "pages": float(len(entity.sources))}
    score = alike
    if types:
        reasons["type_match"] = bool(set(types) & set(entity.types))
        score *= 1.0 if reasons["type_match"] else _OTHER_TYPE
    elif is_minor(entity.iri, entity.types):
        reasons["minor"] = True
        score *= _MINOR
    if known and alike:
        shares = [_share(quads, entity, one) for one in known]
        reasons.update({f"property_{place}": round(100 * share, 1) for place, share in enumerate(shares, 1)})
        score = (score + sum(shares) / len(shares)) / 2
    return NameCandidate(entity=entity, name=name or entity.iri, score=round(100 * score, 1), reasons=reasons)


def _share(quads: QuadStore, entity: Entity, known: KnownValue) -> float:
    """How well a value of the property fits the known one; names of things count as their values."""
    stated = values_at(quads, entity.names, known.path)
    best = 0.0
    for wanted in known.texts:
        for kind, text in stated:
            texts = (text, label_of(quads, text)) if kind == "iri" else (text,)
            if any(comparable(one) == comparable(wanted) for one in texts):
                return 1.0
            best = max(best, *(similarity(wanted, one) for one in texts))
    return best


def values_at(quads: QuadStore, things: Sequence[str], path: PropertyPath) -> list[tuple[str, str]]:
    """The values at the end of a path from one of these things: (`iri` or the IRI of the datatype, text), each once."""
    nodes = list(things)
    for step in path[:-1]:
        nodes = [text for kind, text in _values(quads, nodes, step) if kind == "iri"]
    return _values(quads, nodes, path[-1])


def _values(quads: QuadStore, nodes: Sequence[str], property: str) -> list[tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for node in nodes:
        for predicate, value in statements_of(quads, node, 1000):
            if predicate == property and len(found) < _MOST_VALUES:
                datatype = getattr(value, "datatype", None)
                kind = datatype.value if datatype is not None else "iri"
                found.setdefault(comparable(value.value), (kind, value.value))
    return list(found.values())


def _with_match(candidates: list[NameCandidate]) -> list[NameCandidate]:
    """The first is sure if it is nearly perfect and no other comes near it."""
    if not candidates or candidates[0].score < _SURE:
        return candidates
    if len(candidates) > 1 and candidates[0].score - candidates[1].score < _AHEAD:
        return candidates
    return [msgspec.structs.replace(candidates[0], match=True), *candidates[1:]]


def is_minor(iri: str, types: Sequence[str]) -> bool:
    """Whether this is a part of another thing without an address of its own, or a page, rather than a thing."""
    return iri.startswith(BLANK) or PART_TYPES.issuperset(map(canonical, types))
