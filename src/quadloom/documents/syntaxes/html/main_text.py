"""The main text of a page: what it is about, without teasers, captions, and share bars. Lines of the
page's text are chosen, so the main text is a list of spans of it.

A line is prose if it is long, has words and few links. Everything follows from where prose stands:

* What the classes, names and tags of elements call comments, related pages, captions and the like is left out, unless
  it holds most of the page's prose: a forum consists of comments.
* The article is the element with the greatest balance: its prose counts for it, short lines, links and what is left out
  count against it.
* Of the article remain its prose, and short lines between the first and the last prose if they are paragraphs,
  headings or entries. Short lines in boxes of their own (dates, tags, teasers) do not.
* Lists and tables with few links, code, prices and the first heading remain wherever they stand.
* If that is not most of what the page says, the page is no article (a product, a list, a front page): its text remains
  but for what its classes call navigation, advertisements, share bars and the like.

Limits were chosen on one half of the hosts in tests/quality/main_text_hosts.txt; F1 changes by less than .01 if any of
them changes by a fifth. See docs/decisions/0022-main-text-by-our-own-rules.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from quadloom.documents.syntaxes.html.element_nodes import COMMON_TAGS

if TYPE_CHECKING:
    from quadloom.documents.syntaxes.html.elements import Elements, TextLines

_MIN_PROSE = 50  # characters of a line
_MIN_DENSE_PROSE = 20  # in scripts that write a word in two characters; their characters take three bytes
_MIN_LISTED = 30  # characters of a list or table
_LINK_COST = 2  # a character in a link, by one of prose
_ENTRY_LINK_COST = 4  # in entries of lists and tables, which are more often teasers
_SHORT_LINE_COST = 10
_NOISE_SHARE = 70  # percent of all prose: what holds more is no noise, whatever it is called
_BOILERPLATE_SHARE = 40  # percent of the text: likewise on pages that are no articles
_WRAPPER_SHARE = 97  # percent of all prose: what holds more has the whole page in it
_MIN_COMMENTED = 200  # characters of prose besides comments: with less, the page is a forum
_MAX_CAPTION = 250  # characters of an element that its class calls a picture
_ARTICLE_SHARE = 60  # percent of the unlinked text that an article covers
_LONG_ARTICLE, _LONG_ARTICLE_SHARE = 1000, 30  # or at least so many characters, and so many percent
_MAX_PRICE = 60  # characters of a line with a price
_WORDY = 20  # a blank in so many characters, in ASCII: hashes and paths have fewer


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOILERPLATE = _names(
    "ad ads advert advertisement advertising adsense adv promo promos promoted promotion sponsor sponsored "
    "sponsors nav navbar navigation menu breadcrumb breadcrumbs pagination pager toolbar sidebar footer "
    "masthead skip tooltip share sharing sharebar shareline social socials addthis sharethis sharedaddy "
    "addtoany shareaholic related recommend recommended "
    "recommendation recommendations recirc recirculation suggested trending outbrain taboola zergnet mgid "
    "readmore seealso upnext mostread newsletter newsletters subscribe subscription subscribers signup signin "
    "login register paywall cookie cookies consent gdpr ccpa banner popup modal overlay visually werbung "
    "anzeige publicite publicidad pubblicita reklama "
    "verwandte similaires relacionados relacionadas correlati partager compartir condividi teilen"
)
_NOISE = _BOILERPLATE | _names(
    "shares follow popular teaser teasers promobox caption captions credit credits copyright "
    "disclaimer byline bylines bio author authors dateline timestamp tags taglist keywords hidden sr rating "
    "ratings vote poll print toc metadata postmeta autor auteur autore bildunterschrift legende"
)
_COMMENTS = _names(
    "comment comments disqus respond replies livefyre discussion commentaires comentarios commenti kommentar kommentare"
)
_PICTURE = _names("photo photos image images picture thumbnail thumb gallery slideshow figure img")
_BOILERPLATE_TAGS = _names("aside footer nav menu dialog")
_NOISE_TAGS = _names("figcaption form button label address time textarea fieldset legend")
_NAMING_TAGS = _BOILERPLATE_TAGS | _NOISE_TAGS
_NO_NAMES = (None, None)
_UNJUDGED_TAGS = _names("body html main article")  # their classes describe the page
_TITLES = _names("h1 h2 h3 h4 a button pre code")  # no prose, however long
_ENTRIES = _names("li td dd dt tr th")
_PARTS = _names("p li tr tbody thead ul ol dl dd dt blockquote pre h1 h2 h3 h4 h5 h6")  # no articles
_HEADINGS = _names("h2 h3 h4 h5 h6")
_LISTS = _names("ul ol table dl")
_TEXTS = _names("p li blockquote pre dd")
_CELLS = _names("dt tr td th tbody thead br")
_DATA = _names("ul ol table dl pre")

_IS_NOISE, _IS_BOILERPLATE, _IS_PICTURE, _IS_COMMENT = 1, 2, 4, 8
_KEPT, _LEFT_OUT = 1, 2  # marks of lines
_KEPT_ONLY = bytes(mark & _KEPT for mark in range(256))
_RUN = re.compile(rb"\x01+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ENDS = frozenset(".!?\u2026\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964:;")
_QUOTES = "\"')]\u201c\u201d\u2019\u00bb\u300d\u300f "
_CURRENCY = "$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20ba\u20b4\u0e3f\u20ab\u20b1\u20aa\u5186\u5143"
_CODES = ("EUR", "USD", "GBP", "CHF", "kr", "z\u0142", "K\u010d", "\u0440\u0443\u0431")
_CODED = "|".join(_CODES)
_PRICE = re.compile(rf"(?:[{_CURRENCY}]|\b(?:{_CODED})\b\.?)\s?\d|\d\s?(?:[{_CURRENCY}]|(?:{_CODED})\b)")


def main_lines(elements: Elements, root: int, lines: TextLines) -> bytes:
    """A byte for each line of the text below `root`: 1 if it is main text, else 0."""
    text, sizes, links, holders = lines
    if not text:
        return b""
    marks = _marks(elements, root, lines)
    kept = bytearray(marks.translate(_KEPT_ONLY))
    headings = set(elements.named("h1"))
    titles = [number for number, holder in enumerate(holders) if holder in headings] if headings else []
    if titles:
        title = next((number for number in titles if links[number] * 2 <= sizes[number]), titles[0])
        kept[title] = 1
        open_lines = [at for at, mark in enumerate(marks) if not mark and at > title and sizes[at] <= _MAX_PRICE]
        if open_lines:
            written = text.split("\n")
            for at in open_lines:
                if not links[at] and _PRICE.search(written[at]):
                    kept[at] = 1
    return bytes(kept) if 1 in kept else b"\1" * len(kept)


def spans_of(sizes: Sequence[int], kept: bytes, length: int) -> tuple[int, ...]:
    """Spans (start, end, start, end …) of the lines that are kept, in a text of lines of these sizes. Of the text
    the first `length` characters are left."""
    ends = list(accumulate(sizes))  # without the line breaks before
    spans: list[int] = []
    for run in _RUN.finditer(kept):
        first, last = run.start(), run.end() - 1
        start = ends[first] - sizes[first] + first
        if start >= length:
            break
        spans += (start, min(ends[last] + last, length))
    return tuple(spans)


@lru_cache(maxsize=16384)  # the pages of a site share their classes
def _signs(tag: str, classes: str | None, name: str | None) -> int:
    """What an element is called."""
    if tag in _BOILERPLATE_TAGS:
        return _IS_NOISE | _IS_BOILERPLATE
    if tag in _NOISE_TAGS:
        return _IS_NOISE
    if tag in _UNJUDGED_TAGS or not (classes or name):
        return 0
    words = {word.lower() for word in _WORD.findall(f"{classes or ''} {name or ''}")}
    return (
        (0 if words.isdisjoint(_NOISE) else _IS_NOISE)
        | (0 if words.isdisjoint(_BOILERPLATE) else _IS_BOILERPLATE)
        | (0 if words.isdisjoint(_PICTURE) else _IS_PICTURE)
        | (0 if words.isdisjoint(_COMMENTS) else _IS_COMMENT)
    )


def _ends_sentence(line: str) -> bool:
    last = line[-1]
    return last in _ENDS or (last in _QUOTES and (line.rstrip(_QUOTES)[-1:] in _ENDS or last not in ") "))


class _Page:
    """The lines of a page, and by number in `nodes` the elements that hold them, each behind what holds it."""

    __slots__ = (
        "counts", "elements", "held_by", "lines", "linked", "links", "places", "prose", "prose_below", "signs",
        "sizes", "tags", "text_sizes", "titled",
    )  # fmt: skip

    def __init__(self, elements: Elements, root: int, lines: TextLines) -> None:
        text, self.text_sizes, self.links, holders = lines
        self.lines = text.split("\n") if text else []
        parent, tag = elements.parent, elements.tag
        above = {root: -1}
        for number in holders:
            while number not in above:
                outer = parent(number)
                above[number] = outer
                number = outer
        nodes = sorted(above)
        index = {number: place for place, number in enumerate(nodes)}
        self.held_by = [index.get(above[number], 0) for number in nodes]
        self.tags = [tag(number) for number in nodes]
        rows = elements.values(nodes, ("class", "id"))
        self.signs = [
            0 if row == _NO_NAMES and name not in _NAMING_TAGS else _signs(name, *row)
            for name, row in zip(self.tags, rows, strict=True)
        ]
        self.signs[0] = 0
        self.places = [index[number] for number in holders]
        self.prose = [0 if size < _MIN_DENSE_PROSE else self._prose(line) for line, size in enumerate(self.text_sizes)]
        self.sizes = self._sums(self.text_sizes)
        self.linked = self._sums(self.links)
        self.counts = self._sums([1] * len(holders))
        self.prose_below = self._sums(self.prose)
        self.titled = self._titled()
        self._judge_comments()

    def _judge_comments(self) -> None:
        """Comments are noise, unless there is hardly anything that they could comment on: then the page is a forum."""
        commented = [place for place, sign in enumerate(self.signs) if sign & _IS_COMMENT]
        if not commented:
            return
        whole = self.prose_below[0]
        left_out = [False] * len(self.signs)
        for place in range(1, len(left_out)):
            sign, prose = self.signs[place], self.prose_below[place] * 100
            left_out[place] = left_out[self.held_by[place]] or (
                (sign & _IS_NOISE != 0 and prose <= whole * _NOISE_SHARE)
                or (sign & _IS_COMMENT != 0 and prose <= whole * _WRAPPER_SHARE)
            )
        others = [prose for place, prose in zip(self.places, self.prose, strict=True) if not left_out[place]]
        if sum(others) >= _MIN_COMMENTED:
            for place in commented:
                self.signs[place] |= _IS_NOISE | _IS_BOILERPLATE

    def _titled(self) -> set[int]:
        """Tables with a header: they hold data, tables without one may lay out the page."""
        found = set()
        for place, tag in enumerate(self.tags):
            if tag == "th":
                while place and self.tags[place] != "table":
                    place = self.held_by[place]
                found.add(place)
        return found

    def _sums(self, values: Sequence[int]) -> list[int]:
        """By element the sum of all lines below."""
        sums = [0] * len(self.held_by)
        for place, value in zip(self.places, values, strict=True):
            sums[place] += value
        held_by = self.held_by
        for place in range(len(sums) - 1, 0, -1):
            sums[held_by[place]] += sums[place]
        return sums

    def _prose(self, number: int) -> int:
        """How many characters of prose a line counts for."""
        size = self.text_sizes[number]
        tag = self.tags[self.places[number]]
        if tag in _TITLES:
            return 0
        line = self.lines[number]
        if line.isascii():
            if size < _MIN_PROSE or line.count(" ") * _WORDY < size:
                return 0
        elif size < _MIN_PROSE and len(line.encode("utf-8", "replace")) * 5 <= size * 11:
            return 0
        prose = size - self.links[number] * (_ENTRY_LINK_COST if tag in _ENTRIES else _LINK_COST)
        if prose <= 0:
            return 0
        return prose if _ends_sentence(line) else (prose + 1) // 2

    def boilerplate(self) -> list[bool]:
        """For each line whether it is called something that is no content, on whatever page."""
        most = self.sizes[0] * _BOILERPLATE_SHARE
        signs, sizes, held_by = self.signs, self.sizes, self.held_by
        found = [False] * len(held_by)
        for place in range(1, len(held_by)):
            found[place] = found[held_by[place]] or (signs[place] & _IS_BOILERPLATE != 0 and sizes[place] * 100 <= most)
        return [found[place] for place in self.places]

    def _noise(self) -> list[bool]:
        """For each element whether it is called something that is no part of an article."""
        most = self.prose_below[0] * _NOISE_SHARE
        signs, held_by = self.signs, self.held_by
        found = [False] * len(held_by)
        for place in range(1, len(held_by)):
            sign = signs[place]
            found[place] = found[held_by[place]] or (
                sign != 0
                and (
                    (sign & _IS_NOISE != 0 and self.prose_below[place] * 100 <= most)
                    or (sign & _IS_PICTURE != 0 and self.sizes[place] <= _MAX_CAPTION and self.counts[place] <= 3)
                )
            )
        return found

    def article(self) -> list[int] | None:
        """A mark for each line of an article; None if the page is none."""
        if not self.prose_below[0]:
            return None
        noise = self._noise()
        prose = [0 if noise[place] else value for place, value in zip(self.places, self.prose, strict=True)]
        below = self._sums(prose)
        if not below[0]:
            return None
        root = self._root(prose, noise)
        kept = self._chosen(root, prose, below, noise)
        said = sum(
            size - links
            for size, links, left_out in zip(self.text_sizes, self.links, self.boilerplate(), strict=True)
            if not left_out
        )
        found = sum(size - links for size, links, keep in zip(self.text_sizes, self.links, kept, strict=True) if keep)
        is_most = found * 100 >= said * _ARTICLE_SHARE
        is_long = found >= _LONG_ARTICLE and found * 100 >= said * _LONG_ARTICLE_SHARE
        if not is_most and not is_long:
            return None
        return [keep | (_LEFT_OUT if noise[place] else 0) for keep, place in zip(kept, self.places, strict=True)]

    def _root(self, prose: Sequence[int], noise: Sequence[bool]) -> int:
        """The element with the greatest balance; of equal ones the innermost."""
        costs = [
            value or (-(min(size, 200) * 3 // 10) if noise[place] else -_SHORT_LINE_COST - links // 2)
            for place, value, size, links in zip(self.places, prose, self.text_sizes, self.links, strict=True)
        ]
        balance = self._sums(costs)
        most = max(balance)
        root = max(place for place, value in enumerate(balance) if value == most)
        while root and self.tags[root] in _PARTS:
            root = self.held_by[root]
        place = root
        while place and (self.tags[place] in _CELLS or self.tags[place] == "table"):
            if place in self.titled:
                root = self.held_by[place]
            place = self.held_by[place]
        return root

    def _chosen(self, root: int, prose: Sequence[int], below: Sequence[int], noise: Sequence[bool]) -> list[bool]:
        held_by, tags = self.held_by, self.tags
        inside = [False] * len(tags)  # of the article
        bare = [0] * len(tags)  # by element without prose: the outermost such element around it
        data = self._data(root)
        for place in range(len(tags)):
            outer = held_by[place]
            inside[place] = place == root or inside[outer]
            if not below[place]:
                bare[place] = place if below[outer] else bare[outer]
        written = [number for number, value in enumerate(prose) if value and inside[self.places[number]]]
        first, last = (written[0], written[-1]) if written else (0, -1)
        kept: list[bool] = []
        for number, place in enumerate(self.places):
            between = first <= number <= last
            if noise[place]:
                keep = False
            elif data[place]:
                keep = True
            elif not inside[place]:
                keep = False
            elif prose[number]:
                keep = True
            elif below[place]:  # beside prose, in the same element
                keep = between and self.links[number] * 2 <= self.text_sizes[number]
            else:
                keep = self._belongs(
                    number, bare[place], first <= number <= last, number == last + 1 or (number > 0 and kept[-1])
                )
            kept.append(keep)
        return kept

    def _belongs(self, number: int, bare: int, between: bool, follows: bool) -> bool:
        """Whether a short line of an article is part of it. `bare`: the outermost element around it without prose."""
        tag = self.tags[bare]
        linked, size = self.linked[bare], self.sizes[bare]
        if tag in _HEADINGS:
            return between and linked * 2 < size
        if tag in _LISTS:
            return linked * 5 < size * 2 and (between or follows)
        if tag in _TEXTS:
            return linked * 5 < size * 3 and (between or _ends_sentence(self.lines[number]))
        if tag in _CELLS:
            return between and linked * 2 < size
        return between and linked * 10 < size * 3 and self.counts[bare] == 1 and _ends_sentence(self.lines[number])

    def _data(self, root: int) -> list[bool]:
        """For each element whether it belongs to code, or to a list or table of content, beside or in the article."""
        held_by, tags = self.held_by, self.tags
        around = {0}  # what holds the article: tables that lay out the page
        place = root
        while place:
            around.add(place)
            place = held_by[place]
        outermost = [0] * len(tags)
        found = [False] * len(tags)
        for place in range(1, len(tags)):
            outer = held_by[place]
            if outermost[outer]:
                outermost[place] = outermost[outer]
                found[place] = found[outer]
            elif tags[place] in _DATA and place not in around:
                outermost[place] = place
                found[place] = self._is_data(place)
        return found

    def _is_data(self, place: int) -> bool:
        tag, linked, size = self.tags[place], self.linked[place], self.sizes[place]
        if tag == "pre":
            return linked * 10 <= size
        if self.counts[place] < 2 or size < _MIN_LISTED:
            return False
        if tag == "table":
            return place in self.titled or linked * 5 <= size * 2
        return linked * 10 <= size


def marks_in_python(elements: Elements, root: int, lines: TextLines) -> bytes:
    """For each line below `root` what it is by all rules but those for the first heading and for prices: kept, left out
    by its name, or neither."""
    page = _Page(elements, root, lines)
    marks = page.article()
    if marks is None:
        marks = [_LEFT_OUT if left_out else _KEPT for left_out in page.boilerplate()]
    return bytes(marks)


try:
    from quadloom.documents.native import elements as _native
except ImportError:  # it was not built: there is no compiler
    _native = None  # type: ignore[assignment]
else:
    _BY_TAG = (
        (1 << 4, _TITLES), (1 << 5, _ENTRIES), (1 << 6, _PARTS), (1 << 7, _HEADINGS), (1 << 8, _LISTS),
        (1 << 9, _TEXTS), (1 << 10, _CELLS), (1 << 11, _DATA), (1 << 12, _UNJUDGED_TAGS), (1 << 13, {"table"}),
        (1 << 14, {"pre"}), (1 << 15, {"th"}), (_IS_NOISE, _NAMING_TAGS), (_IS_BOILERPLATE, _BOILERPLATE_TAGS),
    )  # fmt: skip
    _BY_WORD = (
        (_IS_NOISE, _NOISE), (_IS_BOILERPLATE, _BOILERPLATE), (_IS_PICTURE, _PICTURE), (_IS_COMMENT, _COMMENTS),
    )  # fmt: skip
    _native.main_text_rules(
        {number: sum(bit for bit, names in _BY_TAG if name in names) for number, name in COMMON_TAGS.items()},
        {
            word: sum(bit for bit, words in _BY_WORD if word in words)
            for word in sorted(_NOISE | _PICTURE | _COMMENTS)
        },
        "".join(sorted(_ENDS)),
        _QUOTES,
        (
            _MIN_PROSE, _MIN_DENSE_PROSE, _MIN_LISTED, _LINK_COST, _ENTRY_LINK_COST, _SHORT_LINE_COST, _NOISE_SHARE,
            _BOILERPLATE_SHARE, _WRAPPER_SHARE, _MIN_COMMENTED, _MAX_CAPTION, _ARTICLE_SHARE, _LONG_ARTICLE,
            _LONG_ARTICLE_SHARE, _WORDY,
        ),
    )  # fmt: skip


def _marks(elements: Elements, root: int, lines: TextLines) -> bytes:
    if _native is not None and isinstance(elements, _native.Elements):
        return _native.main_text_marks(elements, root, lines)
    return marks_in_python(elements, root, lines)
