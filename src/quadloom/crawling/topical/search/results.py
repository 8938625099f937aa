"""Result pages of a site's own search: the results, their total number, and the URL of the next page.

A `Wrapper` is learned from two answers of one engine: to a real query, and to a nonsense word that nothing can match.
Whatever the second page shows is boilerplate, in any language. That includes advertisements that echo the query: their
URLs differ, but their position and shape are the same. What only the first page shows, in its most regular list, are
the results.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from quadloom.crawling.topical.anchors import Anchor, PageOutline, is_page, shape_of
from quadloom.crawling.topical.forms.html_forms import Control, Form, read_forms
from quadloom.crawling.topical.search.totals import total_of
from quadloom.model.url import canonical, host_of, site_of

_NEXT = re.compile(
    r"(?i)^\W*(next|next page|next results|more|more results|older|older posts|weiter|nächste|ältere|suivant|"
    r"page suivante|siguiente|"
    r"próxim[oa]|seguinte|avanti|successiv[oaie]|volgende|nästa|neste|næste|seuraava|następn[ay]|další|ďalej|következő|următoare[al]*|"
    r"следующ\w+|вперед|вперёд|далее|дальше|наступна|επόμεν\w+|sonraki|التالي|بعدی|הבא|अगला|ถัดไป|tiếp|berikutnya|"
    r"次へ|次|下一页|下一頁|下页|다음)\W*$"
)
_PAGER_BUTTONS = frozenset(("submit", "button", "image"))
_PAGER_CONTROLS = _PAGER_BUTTONS | {"hidden", "select"}
_ARROW = re.compile(r"^\s*[›»>→]+\s*$")


class SearchResult(msgspec.Struct, frozen=True):
    """One hit of a site's search, with enough words to estimate it before it is fetched."""

    url: str
    title: str
    snippet: str = ""
    rank: int = 0


class ResultPage(msgspec.Struct, frozen=True):
    """`total`: number of results stated by the engine, -1 = unknown. `next_url`: empty = none found;
    `next_fields`: what is posted there, if the page is turned by a form."""

    results: tuple[SearchResult, ...] = ()
    total: int = -1
    next_url: str = ""
    next_fields: tuple[tuple[str, str], ...] = ()


class Wrapper(msgspec.Struct, frozen=True):
    """What results look like on one site. Empty `signature` = the site has no HTML result pages."""

    signature: str = ""
    # Keys of links on every answer. Channels are stored, so the field keeps its name in the encoding.
    boilerplate: frozenset[str] = msgspec.field(default_factory=frozenset, name="furniture")
    shapes: frozenset[str] = frozenset()  # URL patterns of links that change with the query but are not results


def learn_wrapper(real: PageOutline, nonsense: PageOutline) -> Wrapper | None:
    """Learn from a real and an empty answer; None if they do not differ, because then this is not a search."""
    boilerplate = frozenset(anchor.key for anchor in nonsense.anchors)
    shapes = frozenset(
        anchor.shape
        for anchor in nonsense.anchors
        if urlsplit(anchor.url).query and anchor.key != canonical(nonsense.url)
    )
    fresh = [
        anchor
        for anchor in real.anchors
        if anchor.key not in boilerplate and anchor.shape not in shapes and _is_target(anchor, real)
    ]
    groups: dict[str, dict[str, Anchor]] = {}
    for anchor in fresh:
        groups.setdefault(anchor.signature, {}).setdefault(anchor.key, anchor)
    if not groups:
        return None
    signature = max(groups, key=lambda name: _weight(groups[name]))
    return Wrapper(signature, boilerplate, shapes)


def read_results(outline: PageOutline, wrapper: Wrapper) -> ResultPage:
    """The results, total and next page of an answer."""
    found: dict[str, SearchResult] = {}
    for anchor in outline.anchors:
        if anchor.signature != wrapper.signature or anchor.key in wrapper.boilerplate or anchor.shape in wrapper.shapes:
            continue
        if _is_target(anchor, outline) and anchor.key not in found and anchor.text:
            found[anchor.key] = SearchResult(anchor.url, anchor.text, anchor.block, len(found))
    results = tuple(found.values())
    return ResultPage(results, total_of(outline.lines, outline.url, len(results)), next_url(outline) if results else "")


def _is_target(anchor: Anchor, outline: PageOutline) -> bool:
    """Whether a link could be a result: on the same site, and not the search page in another order or page."""
    if site_of(host_of(anchor.url)) != site_of(host_of(outline.url)) or not is_page(anchor.url):
        return False
    return anchor.shape.partition("?")[0] != shape_of(outline.url).partition("?")[0] or not _shares_query(
        anchor, outline
    )


def _shares_query(anchor: Anchor, outline: PageOutline) -> bool:
    ours = {value for _, value in parse_qsl(urlsplit(outline.url).query) if len(value) > 1}
    theirs = {value for _, value in parse_qsl(urlsplit(anchor.url).query)}
    return bool(ours & theirs) or not ours


def _weight(group: dict[str, Anchor]) -> float:
    """Higher for groups of many links with words in them and around them, as results have."""
    words = sum(min(len(anchor.text), 80) + 0.5 * min(len(anchor.block), 200) for anchor in group.values())
    return words + 20.0 * len(group)


def next_url(outline: PageOutline) -> str:
    """The next page: rel=next, else this URL with one larger number, else a link with a word or arrow for `next`."""
    for anchor in outline.anchors:
        if "next" in anchor.rel.lower().split():
            return anchor.url
    here = dict(parse_qsl(urlsplit(outline.url).query, keep_blank_values=True))
    path = urlsplit(outline.url).path
    growing: list[tuple[int, str]] = []
    worded = ""
    for anchor in outline.anchors:
        if site_of(host_of(anchor.url)) != site_of(host_of(outline.url)):
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
    """How much larger one number is if all else is equal; 0 = no such number. A missing number is page 1."""
    differing = [name for name in there if there[name] != here.get(name)]
    unchanged = all(there.get(name, value) == value or name in differing for name, value in here.items())
    if len(differing) != 1 or not unchanged or not there[differing[0]].isdecimal() or len(there[differing[0]]) > 6:
        return 0
    old = here.get(differing[0], "")
    new = int(there[differing[0]])
    before = int(old) if old.isdecimal() and len(old) <= 6 else (1 if new < 5 else 0)
    return max(0, new - before)


def next_form(body: bytes, url: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The next page behind the button of a form: its URL, and the fields to post; the URL is empty if there is none.
    Only forms without anything to fill in are considered."""
    for form in read_forms(body, url):
        if any(control.kind not in _PAGER_CONTROLS for control in form.controls):
            continue
        for button in form.controls:
            if button.kind in _PAGER_BUTTONS and _turns(button):
                pairs = _pressed(form, button)
                if form.method == "get":
                    return f"{form.action.partition('?')[0]}?{urlencode(pairs)}", ()
                return form.action, tuple(pairs)
    return "", ()


def _turns(button: Control) -> bool:
    labels = (button.value if button.kind != "image" else "", button.words)
    return any(_NEXT.match(label) or _ARROW.match(label) for label in labels if label and len(label) < 25)


def _pressed(form: Form, button: Control) -> list[tuple[str, str]]:
    pairs = [(c.name, c.value) for c in form.controls if c.sent and c.name and c.kind not in _PAGER_BUTTONS]
    if button.name and button.kind == "image":
        pairs += [(f"{button.name}.x", "1"), (f"{button.name}.y", "1")]
    elif button.name:
        pairs.append((button.name, button.value))
    return pairs
