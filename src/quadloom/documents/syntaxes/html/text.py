"""The text of a page: what a reader sees in its main part, without menus, banners and footers.

The text is for search and change detection, so it must be cheap, it must not lose words, and it must not change when a
banner does. All rules are by structure:

* The page's own `<main>` (or `role=main`, or its only `<article>`) is trusted: everything in it counts, links too, but
  for navigation, dialogues and what is hidden. A first heading outside of it counts as well.
* Without one, what HTML or ARIA calls navigation, footer, aside, form or dialogue is left out, a header too unless it
  holds a heading, and so is what its class calls a menu, a cookie notice or the like.
* Then lists of links are judged. In the element that holds the first heading and most of the text they are content. So
  they are if the page is mostly such lists. What stands before the heading, or beside that element, is a menu.
* If too little remains, the rules are dropped.

Words of different blocks are separate, words of one block are not: `w<b>or</b>d` is one word, `<h1>a</h1>b` are two.

The rules are here; `quadloom.documents.syntaxes.html.elements` counts and collects the text. This may change the tree:
it runs when all syntaxes have read it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import compress, islice
from typing import NamedTuple

from quadloom.documents.syntaxes.html.element_nodes import BORDER, folded_parts
from quadloom.documents.syntaxes.html.elements import BELOW, BESIDE, Elements, TextView, Values
from quadloom.documents.syntaxes.html.main_text import main_lines, spans_of
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.link import Link
from quadloom.model.url import resolve

ENOUGH = 140  # characters; less than a short paragraph is no main text
ENOUGH_IN_MAIN = 25  # in an element that the page itself calls its main part: more than "Loading, please wait"
MAX_FIELD = 20_000  # characters of headings, of texts of links and of images

_NEVER = ("script", "style", "noscript", "svg", "iframe", "object", "select", "template")
_IN_MAIN = ("nav", "dialog", "menu", "button")
_ASIDE = (*_IN_MAIN, "footer", "aside", "form")
_ROLE_NAMES = "navigation search dialog alert alertdialog menu menubar toolbar banner"
_ROLES_IN_MAIN = frozenset(_ROLE_NAMES.split())
_ROLES = _ROLES_IN_MAIN | {"contentinfo", "complementary"}
_HIDING = ("role", "hidden", "aria-hidden")
_NOISE = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|breadcrumbs?|cookies?|consent|banner|advert\w*|ads?|promo|sponsor\w*|sidebar"
    r"|footer|masthead|share|sharing|social|newsletter|popup|modal|pagination|pager|skip-?link|related|toolbar)(?:$|[\s_-])",
    re.I,
)
# Elements that stay within a line: words on both sides belong together ("w<b>or</b>d").
_INLINE_NAMES = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q ruby rb rt s samp small "
    "span strike strong sub sup time tt u var wbr"
)
INLINE = tuple(_INLINE_NAMES.split())
_LINE = frozenset(INLINE)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CONTAINERS = ("div", "section", "ul", "table")
_ENTRIES = frozenset(("li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "tfoot"))
_MAIN = "main text"  # in `Context.shared`
_HIGHEST_COLUMN = 12  # elements between the heading and its column


def read_text(context: Context) -> None:
    """The page's text, its headings, and the texts of links and images in its main part. May change the tree."""
    elements = context.all_elements
    body = next((number for number in elements.named("body") if elements.parent(number) == 0), -1)
    numbers = elements.having(_HIDING)
    marked = list(zip(numbers, elements.values(numbers, _HIDING), strict=True))
    root = _main(elements, marked)
    if root >= 0:
        view = elements.view(root)
        _leave_out(elements, view, (*_NEVER, *_IN_MAIN))
        _leave_out_by_role(marked, view, root, _ROLES_IN_MAIN)
        length, facts = _state(context, view, root), context.facts
        # A single article may also be a short part of a page; who writes <main> means it.
        if length >= ENOUGH or (
            elements.tag(root) != "article" and (length >= ENOUGH_IN_MAIN or facts.headings or facts.link_texts)
        ):
            return
    if body < 0:
        return
    view = elements.view(body)
    _leave_out(elements, view, (*_NEVER, *_ASIDE))
    _leave_out_headers(elements, view)
    _leave_out_by_role(marked, view, body, _ROLES)
    _leave_out_by_class(elements, view)
    _leave_out_menus(elements, view, body, context.link_texts)
    if _state(context, view, body) < ENOUGH:
        view = elements.view(body)
        _leave_out(elements, view, _NEVER)
        _state(context, view, body)


def fold_in_python(text: str) -> str:
    """Fold whitespace to single blanks. Most texts need only their ends cut, and to see that costs least."""
    if text.isprintable() and "  " not in text:  # printable: no space but the plain one
        return text.strip(" ")
    return " ".join((text.replace("\u200b", " ") if "\u200b" in text else text).split())


try:
    from quadloom.documents.native.terms import fold_with
except ImportError:  # it was not built: there is no compiler
    fold = fold_in_python
else:
    fold = fold_with(fold_in_python)


_Marked = list[tuple[int, Values]]
"""Elements with a role or hidden, with the values of these attributes."""


def _main(elements: Elements, marked: _Marked) -> int:
    """The element that the page itself calls its main part; -1 if there is none."""
    mains = elements.named("main") or [number for number, (role, _, _) in marked if role == "main"]
    if mains:
        return mains[0]
    articles = elements.named("article")
    return articles[0] if len(articles) == 1 else -1


def _state(context: Context, view: TextView, root: int) -> int:
    """Set the texts of what a view of `root` has left; returns the length of its body."""
    elements, facts = context.all_elements, context.facts
    limit = context.settings.limits.text_chars
    place = view.place
    links = zip(elements.named("a"), context.link_texts, strict=False)
    facts.link_texts = _folded_lines([text for number, text in links if text and place(number) == BELOW])[:MAX_FIELD]
    images = [number for number in elements.named("img") if place(number) == BELOW]
    facts.image_texts = _folded_lines([alternative or "" for (alternative,) in elements.values(images, ("alt",))])[
        :MAX_FIELD
    ]
    headings = [(name, number, place(number)) for name in _HEADINGS for number in elements.named(name)]
    # A first heading outside of the main part is the page's all the same.
    beside = [number for name, number, where in headings if where == BESIDE and name == "h1"]
    above = [fold(view.text(number)) for number in beside]
    facts.headings = _folded_lines([*above, *[view.text(number) for _, number, where in headings if where == BELOW]])[
        :MAX_FIELD
    ]
    lines = view.blocks(INLINE)
    above = list(filter(None, above))
    facts.text = "\n".join([*above, lines[0]] if lines[0] else above)[:limit]
    sizes = [len(line) for line in above] + lines[1]
    kept = main_lines(elements, root, lines)
    context.shared[_MAIN] = _MainPart(beside, lines[3], kept)
    facts.main_spans = spans_of(sizes, b"\1" * len(above) + kept, len(facts.text))
    return len(facts.text)


class _MainPart(NamedTuple):
    """Headings beside the part that was read; for each of its lines the element that holds it, and 1 if it is kept."""

    headings: list[int]
    holders: list[int]
    kept: bytes


def main_holders(context: Context) -> frozenset[int]:
    """The elements that hold lines of main text, when the text was read."""
    part = context.shared.get(_MAIN)
    if not isinstance(part, _MainPart):
        return frozenset()
    return frozenset((*part.headings, *compress(part.holders, part.kept)))


def folded_lines_in_python(texts: list[str]) -> str:
    """One line for each text, white space folded, without empty ones. As
    `quadloom.documents.native.elements.folded_lines`."""
    return "\n".join(folded_parts(BORDER.join(texts)))


try:
    from quadloom.documents.native.elements import folded_lines as _folded_lines
except ImportError:  # it was not built: there is no compiler
    _folded_lines = folded_lines_in_python


def _leave_out(elements: Elements, view: TextView, names: Iterable[str]) -> None:
    """Leave out the contents of all elements with these names."""
    for name in names:
        view.leave_out(elements.named(name))


def _leave_out_headers(elements: Elements, view: TextView) -> None:
    """Headers without a heading: those of the site, not of the page."""
    headers = elements.named("header")
    if not headers:
        return
    titled: set[int] = set()
    for heading in elements.named("h1") + elements.named("h2"):
        at = view.parent(heading)
        while at >= 0 and at not in titled:
            titled.add(at)
            at = view.parent(at)
    view.leave_out([number for number in headers if number not in titled])


def _leave_out_by_role(marked: _Marked, view: TextView, root: int, roles: frozenset[str]) -> None:
    """Elements that are hidden, or that ARIA calls something other than content."""
    found = []
    for number, (role, hidden, aria) in marked:
        if role is None:
            counts = hidden is not None or aria == "true"
        else:
            counts = hidden is not None or role.lower() in roles
        if counts and (number == root or view.place(number) == BELOW):
            found.append(number)
    view.leave_out(found)


def _leave_out_by_class(elements: Elements, view: TextView) -> None:
    for name in _CONTAINERS:
        numbers = elements.named(name)
        rows = elements.values(numbers, ("class", "id"))
        view.leave_out([number for number, row in zip(numbers, rows, strict=True) if _is_noise(*row)])


@lru_cache(maxsize=8192)  # the pages of a site share their classes
def _is_noise(classes: str | None, name: str | None) -> bool:
    return (classes is not None or name is not None) and _NOISE.search(f"{classes or ''} {name or ''}") is not None


class _LinkList:
    """A block that holds links: an enumeration or a table, or the element around the links themselves."""

    __slots__ = ("before_heading", "linked", "number", "size")

    def __init__(self, number: int, before_heading: bool) -> None:
        self.number = number
        self.linked = 0  # characters of its links
        self.size = 0  # and of all its text
        self.before_heading = before_heading


def _leave_out_menus(elements: Elements, view: TextView, body: int, texts: list[str]) -> None:
    """Leave out lists of links that are not content."""
    lists = [one for one in _link_lists(elements, view, body, texts) if one.linked * 2 > one.size]
    if not lists:
        return
    whole = view.size(body)
    prose = whole - sum(one.size for one in lists)
    column = _column(elements, view, body, whole)
    menus = []
    for one in lists:
        if one.before_heading:
            content = False
        elif column >= 0:
            content = _is_below(view, one.number, column)
        else:
            content = one.linked * 2 > prose
        if not content:
            menus.append(one.number)
    view.leave_out(menus)


def _link_lists(elements: Elements, view: TextView, body: int, texts: list[str]) -> list[_LinkList]:
    found: dict[int, _LinkList] = {}
    around: dict[int, int] = {}  # parent of a link -> the block that it belongs to
    headings = elements.named("h1")
    first_heading = headings[0] if headings else -1
    for number, text in zip(elements.named("a"), texts, strict=False):
        parent = view.parent(number)
        if parent < 0 or view.place(number) != BELOW:
            continue
        block = around.get(parent)
        if block is None:
            block = around[parent] = _block(elements, view, parent)
        known = found.get(block)
        if known is None:
            known = found[block] = _LinkList(block, number < first_heading)
        known.linked += len(text) or view.size(number)
    lists = [one for one in found.values() if one.number != body and view.place(one.number) == BELOW]
    for one in lists:
        one.size = view.size(one.number)
    return lists


def _block(elements: Elements, view: TextView, number: int) -> int:
    """The enumeration or table of which this is an entry; else the block that it is or stands in."""
    at = number
    while elements.tag(at) in _LINE and (outer := view.parent(at)) >= 0:
        at = outer
    while elements.tag(at) in _ENTRIES and (outer := view.parent(at)) >= 0:
        at = outer
    return at


def _column(elements: Elements, view: TextView, body: int, whole: int) -> int:
    """The element, smaller than the body, that holds the first heading and most of the text; -1 if there is none."""
    headings = elements.named("h1")
    at = view.parent(headings[0]) if headings else -1
    for _ in range(_HIGHEST_COLUMN):
        if at < 0 or at == body:
            break
        if view.size(at) * 2 > whole:
            return at
        at = view.parent(at)
    return -1


def _is_below(view: TextView, number: int, outer: int) -> bool:
    at = view.parent(number)
    while at > outer:
        at = view.parent(at)
    return at == outer


_SCHEMES = ("http://", "https://")


def read_plain(context: Context) -> None:
    """Plain text: nothing to state, but words to search in. A list of URLs, one a line, is a sitemap in its text
    form."""
    limit = context.settings.limits.text_chars
    text = context.text
    context.facts.text = fold(text[: 2 * limit])[:limit]
    if text.lstrip("\ufeff \t\r\n").startswith(_SCHEMES):
        _read_list(context, text.split())


def _read_list(context: Context, words: list[str]) -> None:
    """sitemaps.org: one URL a line and nothing else. One other word makes it an ordinary text."""
    if not all(word.lstrip("\ufeff").startswith(_SCHEMES) for word in words):
        return
    targets = (target for word in words if (target := resolve(word.lstrip("\ufeff"), context.url)))
    unique = dict.fromkeys(islice(targets, context.settings.limits.links_per_page))
    context.links += [Link(target, context.url, "sitemap") for target in unique]
