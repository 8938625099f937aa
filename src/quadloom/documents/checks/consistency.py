"""Statements of one page that contradict each other, the visible page, or the page's own address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from quadloom.documents.checks.items import Item, Items, Problem, Stated, local, text_of
from quadloom.documents.checks.values import EXPIRES, PAIRS, is_date, is_number
from quadloom.documents.checks.visible_page import VisiblePage
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.url import host_of

_SINGLE = ("name", "headline", "price", "startDate", "endDate", "datePublished", "ratingValue", "telephone", "isbn")
"""Properties with one value for one thing: two syntaxes that differ there contradict each other."""
_SHOWN = (
    ("headline", "headline"),
    ("name", "name"),
    ("price", "offers"),
    ("ratingValue", "aggregateRating"),
    ("startDate", "startDate"),
)
"""What the visible page must show, and the property of the main item through which it is reached."""
_THROUGH = {"price": "offers", "ratingValue": "aggregateRating"}
_RATINGS = {
    f"<{space}schema.org/{name}>": name
    for space in ("http://", "https://")
    for name in ("ratingValue", "bestRating", "worstRating")
}
_MAIN = frozenset(
    ("Product", "Event", "Recipe", "Book", "Movie", "JobPosting", "Article", "NewsArticle", "BlogPosting")
)


def consistency_problems(context: Context, items: Items, marked: Sequence[tuple[Item, str]]) -> list[Problem]:
    """`marked`: items that have one of `MARKED`, with its name."""
    found: list[Problem] = []
    for item, name in marked:
        if item.kind.shape:
            if name == EXPIRES:
                found += _expired(item)
            else:
                found += _rating(item) if name == "ratingValue" else _order(item, name)
    mains = [item for item in items.by_subject.values() if item.kind.type in _MAIN and item.kind.shape]
    mains = [item for item in mains if items.stands_alone(item)]
    if mains:
        if len(mains) > 1:
            found += _contradictions(mains, items)
        if len(mains) == 1 or len({item.syntax for item in mains}) == len(mains):
            found += _invisible(context, mains[0], items)
            if context.facts.canonical:
                found += _address(context, mains[0])
    return found


def _order(item: Item, end: str) -> list[Problem]:
    found = []
    for begin in (begin for begin, after in PAIRS if after == end):
        starts, ends = item.texts(begin), item.texts(end)
        if len(starts) == len(ends) == 1 and _is_before(ends[0].strip(), starts[0].strip()):
            message = f"{end} {ends[0][:40]} is before {begin} {starts[0][:40]}"
            texts = message, ends[0][:60], f"not before {starts[0][:60]}", f"correct {begin} or {end}"
            found.append(Problem(item, _stated(item, end), "value", "date-order", "error", *texts))
    return found


def _expired(item: Item) -> list[Problem]:
    """An offer whose price is no longer valid. The day itself still counts, wherever on the earth it is."""
    texts = [text.strip() for text in item.texts(EXPIRES)]
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    if len(texts) != 1 or not _is_before(texts[0], yesterday):
        return []
    advice = f"write the day until which the price is valid, or leave {EXPIRES} out"
    said = f"{EXPIRES} is in the past: the offer counts as expired", texts[0][:60], "a day to come", advice
    return [Problem(item, _stated(item, EXPIRES), "value", "offer-expired", "error", *said)]


def _is_before(one: str, other: str) -> bool:
    """Whether a date or time is certainly before the other: compared as far as both are written."""
    if not (is_date(one) and is_date(other)) or one[:1] in "+-" or other[:1] in "+-":
        return False
    length = min(len(one.partition("T")[0]), len(other.partition("T")[0]))
    if one[:length] != other[:length]:
        return one[:length] < other[:length]
    clocks = one.partition("T")[2], other.partition("T")[2]
    zones = tuple(re.sub(r"^[\d:.,]*", "", clock) for clock in clocks)
    return length == 10 and bool(clocks[0] and clocks[1]) and zones[0] == zones[1] and clocks[0] < clocks[1]


def _rating(item: Item) -> list[Problem]:
    values: list[str] = []
    best, worst = 5.0, 1.0
    is_stated = False
    for predicate, stated, _ in item.stated:
        name = _RATINGS.get(predicate)
        if name is None or stated[0] != '"':
            continue
        text = text_of(stated)
        if name == "ratingValue":
            values.append(text)
        elif is_number(bound := text.strip()):
            if name == "bestRating":
                best = float(bound)
            else:
                worst, is_stated = float(bound), True
    if len(values) != 1 or not is_number(values[0].strip()):
        return []
    if not is_stated:
        worst = min(worst, best)
    value = float(values[0])
    if worst <= value <= best or (value == 0 and not is_stated):
        return []
    message = f"ratingValue {values[0]} is not between {worst:g} and {best:g}"
    texts = message, values[0], f"{worst:g} to {best:g}", "state bestRating and worstRating, or correct the value"
    return [Problem(item, _stated(item, "ratingValue"), "value", "rating-out-of-bounds", "error", *texts)]


def _contradictions(mains: list[Item], items: Items) -> list[Problem]:
    """Two syntaxes that describe one thing of the same type, and differ."""
    found = []
    for number, item in enumerate(mains):
        for other in mains[number + 1 :]:
            if other.syntax == item.syntax or other.kind.type != item.kind.type:
                continue
            if sum(one.syntax == item.syntax and one.kind.type == item.kind.type for one in mains) > 1:
                continue
            for name in _SINGLE:
                mine, theirs = _single(item, name, items), _single(other, name, items)
                if mine and theirs and _folded(mine[0]) != _folded(theirs[0]):
                    text, holder, value = theirs
                    stated = Stated(_stated(holder, name).predicate, value, other.syntax)
                    message = f"{name} is {text[:50]!r} in {other.syntax} and {mine[0][:50]!r} in {item.syntax}"
                    texts = message, text[:80], mine[0][:80], "write the same in both, or keep one syntax"
                    found.append(Problem(holder, stated, "value", "data-contradiction", "warning", *texts))
    return found


def _single(item: Item, name: str, items: Items) -> tuple[str, Item, str] | None:
    """The only value of a property: of the item, or of its offer or rating."""
    through = _THROUGH.get(name)
    if (through or name) not in item.names:
        return None
    holders = [item]
    if through:
        holders = [other for value in item.values(through) if (other := items.by_subject.get(value)) is not None]
    values = [(text_of(value), holder, value) for holder in holders for value in holder.values(name) if value[0] == '"']
    return values[0] if len(values) == 1 else None


def _folded(text: str) -> str:
    text = " ".join(text.split()).casefold()
    return f"{float(text):g}" if is_number(text) else text


def _invisible(context: Context, item: Item, items: Items) -> list[Problem]:
    """What the data says and neither the page nor its title shows."""
    if context.document.kind not in ("html", "xhtml") or item.syntax != "jsonld":
        return []  # microdata and RDFa mark what is visible
    wanted: list[tuple[str, tuple[str, Item, str]]] = []
    names = item.names
    for name, needs in _SHOWN:
        found = _single(item, name, items) if needs in names else None
        if found is not None and found[0].strip():
            wanted.append((name, found))
    title = context.facts.title
    wanted = [(name, found) for name, found in wanted if found[0] not in title]
    if not wanted:
        return []
    page = VisiblePage(context)
    problems = []
    for name, (text, holder, value) in wanted:
        if not _shows(page, name, text.strip()):
            stated = _stated(holder, name)._replace(value=value)
            message = f"{name} {text[:60]!r} is not on the visible page"
            texts = message, text[:80], "a value that the page shows", "show it on the page, or correct the data"
            problems.append(Problem(holder, stated, "value", "data-not-visible", "warning", *texts))
    return problems


def _shows(page: VisiblePage, name: str, text: str) -> bool:
    if name in ("price", "ratingValue"):
        return page.shows_number(text)
    return page.shows_day(text) if name == "startDate" else page.shows_text(text)


def _address(context: Context, item: Item) -> list[Problem]:
    """`url` of the main item that is neither the page nor its canonical address, though on the same host."""
    canonical = context.facts.canonical
    values = [value for value in item.values("url") if value[0] == "<"]
    if len(values) != 1:
        return []
    stated = values[0][1:-1]
    own = {_address_key(canonical), _address_key(context.url)}
    if _address_key(stated) in own or host_of(stated) != host_of(canonical):
        return []
    message = f"url of the {item.kind.type} is not the page's canonical address"
    texts = message, stated[:200], canonical[:200], "write the same address in url and in rel=canonical"
    about = _stated(item, "url")._replace(value=values[0])
    return [Problem(item, about, "value", "canonical-mismatch", "warning", *texts)]


def _address_key(url: str) -> str:
    return url.partition("#")[0].removeprefix("https://").removeprefix("http://").rstrip("/")


def _stated(item: Item, name: str) -> Stated:
    """The first statement of a property, with its first value in schema.org."""
    predicate, syntax = next(
        ((one[0], one[2]) for one in item.stated if local(one[0]) == name), (f"<http://schema.org/{name}>", item.syntax)
    )
    return Stated(predicate, next(iter(item.values(name)), ""), syntax)
