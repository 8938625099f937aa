"""Result pages of a site's own search: what is a result, how many there are in all, where the next page is.

A `Wrapper` is learned from two answers of one engine: to a real query, and to a nonsense word that nothing can match.
What the second page shows is furniture in any language, advertisements that echo the query included: their URLs
differ, but their place and shape are the same. What only the first shows, in the most regular list, are results.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import msgspec

from quadloom.model.url import canonical, host_of, site_of
from quadloom.topical.anchors import Anchor, PageOutline, shape_of

_NEXT = re.compile(
    r"(?i)^\W*(next|more results|older|older posts|weiter|nächste|ältere|suivant|page suivante|siguiente|"
    r"próxim[oa]|seguinte|avanti|successiv[oaie]|volgende|nästa|neste|næste|seuraava|następn[ay]|další|ďalej|következő|următoare[al]*|"
    r"следующ\w+|вперед|вперёд|далее|дальше|наступна|επόμεν\w+|sonraki|التالي|بعدی|הבא|अगला|ถัดไป|tiếp|berikutnya|"
    r"次へ|次|下一页|下一頁|下页|다음)\W*$"
)
_ARROW = re.compile(r"^\s*[›»>→]+\s*$")
_NUMBER = re.compile(r"\d[\d.,'\u2019\u00a0\u202f ]*\d|\d")
_RANGE = re.compile(r"(\d+)\s*(?:[-–—]|to|bis|à|a|до|～|~)\s*(\d+)")


class SearchResult(msgspec.Struct, frozen=True):
    """One hit of a site's search: enough to judge it before it is fetched."""

    url: str
    title: str
    snippet: str = ""
    rank: int = 0


class ResultPage(msgspec.Struct, frozen=True):
    """`total`: results in all as the engine says, -1 = unknown. `next_url`: empty = the last page, or not found."""

    results: tuple[SearchResult, ...] = ()
    total: int = -1
    next_url: str = ""


class Wrapper(msgspec.Struct, frozen=True):
    """What results look like on one site. Empty `signature` = the site has no HTML result pages."""

    signature: str = ""
    furniture: frozenset[str] = frozenset()  # keys of links that every answer shows
    shapes: frozenset[str] = frozenset()  # URL patterns of links that change with the query but are no results


def learn_wrapper(real: PageOutline, nonsense: PageOutline) -> Wrapper | None:
    """What a real answer has and an empty one has not; None where the two do not differ: then this is no search."""
    furniture = frozenset(anchor.key for anchor in nonsense.anchors)
    shapes = frozenset(
        anchor.shape
        for anchor in nonsense.anchors
        if urlsplit(anchor.url).query and anchor.key != canonical(nonsense.url)
    )
    fresh = [
        anchor
        for anchor in real.anchors
        if anchor.key not in furniture and anchor.shape not in shapes and _is_target(anchor, real)
    ]
    groups: dict[str, dict[str, Anchor]] = {}
    for anchor in fresh:
        groups.setdefault(anchor.signature, {}).setdefault(anchor.key, anchor)
    if not groups:
        return None
    signature = max(groups, key=lambda name: _weight(groups[name]))
    return Wrapper(signature, furniture, shapes)


def read_results(sheet: PageOutline, wrapper: Wrapper) -> ResultPage:
    """Results, total and next page of an answer."""
    found: dict[str, SearchResult] = {}
    for anchor in sheet.anchors:
        if anchor.signature != wrapper.signature or anchor.key in wrapper.furniture or anchor.shape in wrapper.shapes:
            continue
        if _is_target(anchor, sheet) and anchor.key not in found and anchor.text:
            found[anchor.key] = SearchResult(anchor.url, anchor.text, anchor.block, len(found))
    results = tuple(found.values())
    return ResultPage(results, total_of(sheet, len(results)), next_url(sheet) if results else "")


def _is_target(anchor: Anchor, sheet: PageOutline) -> bool:
    """Could be a result: on the same site, not the search page itself in another order or page."""
    if site_of(host_of(anchor.url)) != site_of(host_of(sheet.url)):
        return False
    return anchor.shape.partition("?")[0] != shape_of(sheet.url).partition("?")[0] or not _shares_query(anchor, sheet)


def _shares_query(anchor: Anchor, sheet: PageOutline) -> bool:
    ours = {value for _, value in parse_qsl(urlsplit(sheet.url).query) if len(value) > 1}
    theirs = {value for _, value in parse_qsl(urlsplit(anchor.url).query)}
    return bool(ours & theirs) or not ours


def _weight(group: dict[str, Anchor]) -> float:
    """Results are many, have words of their own, and words around them."""
    words = sum(min(len(anchor.text), 80) + 0.5 * min(len(anchor.block), 200) for anchor in group.values())
    return words + 20.0 * len(group)


def total_of(sheet: PageOutline, shown: int) -> int:
    """The number of results, in any language: a range with a number after it, or the one number in a short line that
    is not smaller than what is shown. -1 where nothing qualifies."""
    if not shown:
        return 0
    best = -1
    for line in sheet.lines:
        if "%" in line or "http" in line:
            continue
        span = _RANGE.search(line)
        if span and int(span.group(1)) <= int(span.group(2)) and int(span.group(2)) - int(span.group(1)) + 1 == shown:
            numbers = [_value(text) for text in _NUMBER.findall(line[: span.start()] + " ; " + line[span.end() :])]
            larger = [value for value in numbers if value >= int(span.group(2))]
            if larger:
                return larger[0]
        numbers = [_value(text) for text in _NUMBER.findall(line)]
        if best < 0 and len(numbers) == 1 and shown <= numbers[0] < 100_000_000 and re.search(r"[^\W\d]", line):
            best = numbers[0]
    return best


def _value(text: str) -> int:
    digits = re.sub(r"\D", "", text)
    return int(digits) if digits and len(digits) < 12 else 0


def next_url(sheet: PageOutline) -> str:
    """rel=next, else a link that is this page with one growing number, else a word or arrow that means `next`."""
    for anchor in sheet.anchors:
        if "next" in anchor.rel.lower().split():
            return anchor.url
    here = dict(parse_qsl(urlsplit(sheet.url).query, keep_blank_values=True))
    path = urlsplit(sheet.url).path
    growing: list[tuple[int, str]] = []
    worded = ""
    for anchor in sheet.anchors:
        if site_of(host_of(anchor.url)) != site_of(host_of(sheet.url)):
            continue
        if (
            not worded
            and anchor.text
            and len(anchor.text) < 25
            and (_NEXT.match(anchor.text) or _ARROW.match(anchor.text))
        ):
            worded = anchor.url
        if urlsplit(anchor.url).path == path:
            step = _growth(here, dict(parse_qsl(urlsplit(anchor.url).query, keep_blank_values=True)))
            if step:
                growing.append((step, anchor.url))
    if worded and (not growing or any(url == worded for _, url in growing)):
        return worded
    return min(growing)[1] if growing else worded


def _growth(here: dict[str, str], there: dict[str, str]) -> int:
    """By how much one number grows where everything else stays; 0 = no such thing. A missing number is page 1."""
    differing = [name for name in there if there[name] != here.get(name)]
    kept = all(there.get(name, value) == value or name in differing for name, value in here.items())
    if len(differing) != 1 or not kept or not there[differing[0]].isdigit() or len(there[differing[0]]) > 6:
        return 0
    old = here.get(differing[0], "")
    new = int(there[differing[0]])
    before = int(old) if old.isdigit() and len(old) <= 6 else (1 if new < 5 else 0)
    return max(0, new - before)
