"""Blocks of HTML as real documents have them: prose with markup inside lines, lists, tables, highlighted code, menus.

Proportions follow 4,000 pages that were composed of real documents: 41 KB, 1,150 nodes and 52 links in the mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from random import Random

_VOCABULARY = (
    "about above account across address after again among another archive article author avenue balance because before "
    "between bridge button canal catalogue change chapter city coast column coffee colour common concert corner county "
    "course critic cultivate daily data decade delay design detail district document drawing early eastern edition "
    "engine evening every example exhibit façade famous farmer feature festival figure finally forest fourth garden "
    "general gently glass granite harbour harvest history island journey kilometre kitchen language lantern later "
    "letter library light limit little local machine market mayor measure member memory method minute mirror modern "
    "morning mountain museum music naïve narrow nature network never northern notice number object office often opera "
    "orchard other paper parcel pattern people period picture plain planet platform player poetry point police price "
    "printer problem product program project public quarter railway rather reason record region report river saddle "
    "sailor sample school season second sentence series service seven shadow signal silver simple single société "
    "soldier source southern special square station story street student studio summer supper surface system table "
    "theatre theory thread ticket timber title together toward travel tunnel under until valley value village visitor "
    "voyage water weather weekly western whether window winter within without wonder worker writer yellow Zürich 東京 "
    "Москва Αθήνα"
)
_WORDS = _VOCABULARY.split()
_INLINE = ("em", "strong", "code", "b", "i", "span", "cite", "kbd", "small", "sub")
_TOKENS = ("k", "n", "o", "p", "s2", "mi", "c1", "nf", "kd", "nb")
_HREF = re.compile(r'(<a\b[^>]*?\bhref\s*=\s*)("[^"]*"|\'[^\']*\')', re.IGNORECASE)
_MARKUP_BODY = re.compile(r"<body[^>]*>(.*?)(?:</body>|\Z)", re.IGNORECASE | re.DOTALL)
_BREAK = re.compile(r"(?i)(?=<(?:p|div|section|table|ul|ol|dl|pre|h[1-6]|article|blockquote)[\s>])")

Hrefs = Iterator[str]


def words(rng: Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def blocks(rng: Random, size: int, hrefs: Hrefs) -> list[str]:
    """About `size` characters of body, with links from `hrefs` in it."""
    kinds = rng.choices(_KINDS, weights=[5, 2, 1, 1, 1, 1, 2], k=3)  # a page has a manner of its own
    found: list[str] = []
    length = 0
    while length < size:
        block = rng.choice(kinds)(rng, hrefs)
        found.append(block)
        length += len(block)
    return found


def script(rng: Random, size: int) -> str:
    lines = []
    length = 0
    while length < size:
        name, other = rng.choices(_WORDS, k=2)
        line = (
            f"  if (window.{name} && a<{rng.randrange(99)}) {{ window['{other}'].push({{'x': '{words(rng, 3)}'}}); }}\n"
        )
        lines.append(line)
        length += len(line)
    return f"<script>(function(a){{\n{''.join(lines)}}})(1);</script>"


class Skeletons:
    """Markup of the HTML files below a folder, cut into blocks, with links replaced."""

    def __init__(self, folder: Path) -> None:
        files = sorted(file for file in folder.rglob("*.htm*") if 3_000 < file.stat().st_size < 400_000)
        self._documents = [parts for file in files if (parts := _cut(file))]
        if not self._documents:
            raise SystemExit(f"no HTML files of 3 to 400 KB below {folder}")

    def blocks(self, rng: Random, size: int, hrefs: Hrefs) -> list[str]:
        """As the function `blocks`."""
        found: list[str] = []
        length = 0
        while length < size:
            parts = rng.choice(self._documents)
            at = rng.randrange(len(parts))
            for part in parts[at : at + 40]:
                found.append(_HREF.sub(lambda match: f'{match[1]}"{escape(next(hrefs, "#top"))}"', part))
                length += len(part)
                if length >= size:
                    break
        return found


def _cut(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8", errors="replace")
    match = _MARKUP_BODY.search(text)
    body = re.sub(r"(?is)<(script|style)\b.*?</\1>", "", match[1] if match else text)
    return [part for part in _BREAK.split(body) if 40 < len(part) < 30_000]


def _prose(rng: Random, hrefs: Hrefs) -> str:
    parts = []
    for _ in range(rng.randrange(2, 7)):
        parts.append(words(rng, rng.randrange(6, 18)))
        tag = rng.choice(_INLINE)
        parts.append(f"<{tag}>{words(rng, 2)}</{tag}>" if rng.random() < 0.6 else _link(rng, hrefs))
    text = " ".join(parts)
    return f'<p class="text-{rng.randrange(9)}">{text}.\n   {words(rng, 12)}.</p>\n'


def _heading(rng: Random, hrefs: Hrefs) -> str:
    level = rng.choice((2, 2, 3, 3, 4))
    name = "-".join(rng.choices(_WORDS, k=2))
    return (
        f'<div class="section" id="{name}"><h{level}>{words(rng, 4)}<a class="headerlink" href="#{name}">¶</a>'
        f"</h{level}>{_prose(rng, hrefs)}</div>\n"
    )


def _list(rng: Random, hrefs: Hrefs) -> str:
    items = "".join(
        f'<li class="item"><span class="label">{words(rng, 1)}</span> {_link(rng, hrefs)} '
        f"<small>{words(rng, 4)}</small></li>\n"
        for _ in range(rng.randrange(3, 12))
    )
    return f'<ul class="simple">\n{items}</ul>\n'


def _table(rng: Random, hrefs: Hrefs) -> str:
    columns = rng.randrange(2, 6)
    rows = "".join(
        "<tr>" + "".join(f'<td class="c{n}">{words(rng, 2)}</td>' for n in range(columns)) + "</tr>\n"
        for _ in range(rng.randrange(3, 14))
    )
    return f'<div class="wrap"><table border="1"><tbody>\n{rows}</tbody></table></div>\n'


def _code(rng: Random, hrefs: Hrefs) -> str:
    lines = []
    for _ in range(rng.randrange(4, 20)):
        tokens = "".join(
            f'<span class="{rng.choice(_TOKENS)}">{rng.choice(_WORDS)}</span><span class="p">(</span>'
            for _ in range(rng.randrange(1, 5))
        )
        lines.append(f"    {tokens}")
    return '<div class="highlight"><pre><span></span>' + "\n".join(lines) + "</pre></div>\n"


def _definitions(rng: Random, hrefs: Hrefs) -> str:
    entries = "".join(
        f'<dt id="d{rng.randrange(9999)}"><code class="name">{words(rng, 1)}</code>(<em>{words(rng, 1)}</em>)</dt>'
        f"<dd>{_prose(rng, hrefs)}</dd>\n"
        for _ in range(rng.randrange(1, 4))
    )
    return f"<dl class='method'>\n{entries}</dl>\n"


def _cards(rng: Random, hrefs: Hrefs) -> str:
    cards = "".join(
        f'<div class="card card--{n}" data-id="{rng.randrange(10**6)}"><div class="card__media">'
        f'<img src="/img/{rng.randrange(999)}.jpg" alt="{words(rng, 3)}" width="320" height="200" loading="lazy"></div>'
        f'<div class="card__body"><h3>{_link(rng, hrefs)}</h3><p>{words(rng, 14)}</p></div></div>\n'
        for n in range(rng.randrange(1, 4))
    )
    return f'<section class="cards">{cards}</section>\n'


def _link(rng: Random, hrefs: Hrefs) -> str:
    return f'<a class="reference" href="{escape(next(hrefs, "#top"))}">{words(rng, rng.randrange(1, 4))}</a>'


_KINDS: tuple[Callable[[Random, Hrefs], str], ...] = (_prose, _heading, _list, _table, _code, _definitions, _cards)
