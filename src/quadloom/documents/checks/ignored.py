"""Markup that gives no statement at all, so that the other checks cannot see it.

The rules of each syntax tell readers to ignore it without a word: a key of JSON-LD that only looks like a keyword, an
`itemprop` outside of every item, a `typeof` without a vocabulary. Authors notice that nothing works, but not why.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from quadloom.documents.checks.locating import placed
from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.start_tags import attribute_places, first_tags_of, tag_around
from quadloom.documents.syntaxes.jsonld.source_positions import jsonld_blocks
from quadloom.documents.syntaxes.jsonld.terms import KEYWORDS, UNKNOWN_KEY, UNKNOWN_KEYWORD
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.finding import Finding

_MOST = 20  # findings of one kind on one page
_NAMED = 5  # properties that one message names
IGNORED_SIGNS = frozenset((UNKNOWN_KEYWORD, "itemprop", "typeof"))
"""Signs of a page without which `ignored_markup` finds nothing."""
_KEYWORDS_BY_LETTERS = {keyword.lower(): keyword for keyword in KEYWORDS}


def ignored_markup(context: Context, syntaxes: Container[str]) -> list[Finding]:
    """A finding for each piece of ignored markup. `syntaxes` are those that were read."""
    found: list[Finding] = []
    if UNKNOWN_KEYWORD in context.signs:
        found += _unknown_keywords(context)
    if context.document.kind in ("html", "xhtml") and context.all_elements.having(("itemprop", "typeof")):
        if "microdata" in syntaxes:
            found += _loose_properties(context)
        if "rdfa" in syntaxes:
            found += _types_without_vocabulary(context)
    return found


def _unknown_keywords(context: Context) -> Iterator[Finding]:
    keys = [key for block in jsonld_blocks(context) for key in UNKNOWN_KEY.finditer(context.utf8, *block)]
    for key in keys[:_MOST]:
        written = key[1].decode()
        meant = _KEYWORDS_BY_LETTERS.get(written.lower(), written[1:])
        message = f"{written} is no keyword of JSON-LD: its value is ignored"
        yield _finding(
            context, "jsonld-keyword", message, key.start(), f'write "{meant}"', "jsonld", found=written, expected=meant
        )


def _loose_properties(context: Context) -> list[Finding]:
    elements = context.all_elements
    numbers = elements.having(("itemprop", "itemscope"))
    values = elements.values(numbers, ("itemprop", "itemscope", "itemref"))
    above = _holders(elements, numbers, [scope is not None for _, scope, _ in values])
    loose = [at for at, (names, _, _) in enumerate(values) if (names or "").strip() and not above[at]]
    wanted = {name for _, scope, names in values if scope is not None for name in (names or "").split()}
    if loose and wanted:
        loose = [at for at in loose if not _is_referred_to(elements, numbers[at], wanted)]
    if not loose:
        return []
    names = list(dict.fromkeys(name for at in loose for name in (values[at][0] or "").split()))
    listed = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    items = sum(values[at][1] is not None for at in loose)
    lost = f", {items} of them whole items" if items else ""
    place = _place_of_property(context, elements, numbers, [names for names, _, _ in values], loose[0])
    how_many = "1 element with itemprop is" if len(loose) == 1 else f"{len(loose)} elements with itemprop are"
    return [
        _finding(
            context,
            "microdata-loose-property",
            f"{how_many} outside of every item{lost}, and ignored: {listed}",
            place,
            "put it inside an element with itemscope and itemtype, or name its id in the itemref of an item",
            "microdata",
            found=names[0],
        )
    ]


def _place_of_property(
    context: Context, elements: Elements, numbers: list[int], values: Sequence[str | None], at: int
) -> int:
    """Where the tag of element `numbers[at]` begins; -1 if that is unknown. Most pages write an `itemprop` in one way,
    so that its places can be counted; the tags of the others are compared with the tree."""
    alike = [place for place, value in enumerate(values) if value == values[at]]
    written = attribute_places(context.utf8, "itemprop", values[at] or "")
    if len(written) == len(alike) and (tag := tag_around(context.utf8, written[alike.index(at)])) is not None:
        return tag.start
    return _tag_places(context, elements, numbers[: at + 1], ("itemprop", "itemscope")).get(numbers[at], -1)


def _is_referred_to(elements: Elements, number: int, wanted: Container[str]) -> bool:
    """Whether an `itemref` names the element or one that holds it."""
    while number >= 0:
        if elements.attributes(number).get("id") in wanted:
            return True
        number = elements.parent(number)
    return False


def _types_without_vocabulary(context: Context) -> list[Finding]:
    elements = context.all_elements
    numbers = elements.having(("typeof", "vocab"))
    values = elements.values(numbers, ("typeof", "vocab"))
    above = _holders(elements, numbers, [bool((vocab or "").strip()) for _, vocab in values])
    ignored: list[tuple[int, str]] = []  # place among the elements, and term
    for at, (types, vocab) in enumerate(values):
        terms = [name for name in (types or "").split() if ":" not in name]
        if terms and not above[at] and not (vocab or "").strip():
            ignored.append((at, terms[0]))
    if not ignored:
        return []
    ignored = ignored[:_MOST]
    places = _tag_places(context, elements, numbers[: ignored[-1][0] + 1], ("typeof", "vocab"))
    return [_without_vocabulary(context, term, places.get(numbers[at], -1)) for at, term in ignored]


def _without_vocabulary(context: Context, term: str, place: int) -> Finding:
    return _finding(
        context,
        "rdfa-no-vocabulary",
        f'typeof="{term}" is ignored: the page does not say of which vocabulary it is',
        place,
        'add vocab="https://schema.org/" to the element or to one around it',
        "rdfa",
        found=term,
        expected=f"schema:{term}, or vocab around it",
    )


def _holders(elements: Elements, numbers: Sequence[int], holds: Sequence[bool]) -> list[bool]:
    """For each element whether one of those around it holds what is asked for."""
    held: list[bool] = []
    for nearest in elements.nesting(numbers):
        held.append(nearest >= 0 and (holds[nearest] or held[nearest]))
    return held


def _tag_places(
    context: Context, elements: Elements, numbers: list[int], attributes: tuple[str, ...]
) -> dict[int, int]:
    """Where the tags of these elements begin in the source, as far as that is known. They are the first that have one
    of the attributes."""
    tags = first_tags_of(context.utf8, elements, numbers, frozenset(attributes))
    return {number: tag.start for number, tag in tags.items()}


def _finding(
    context: Context, code: str, message: str, place: int, advice: str, syntax: str, *, found: str, expected: str = ""
) -> Finding:
    finding = Finding(code, message[:300], advice=advice, syntax=syntax, found=found[:120], expected=expected[:120])
    return placed(context, finding, place)
