"""Numbers, times and texts as pages show them: the filters of the templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from datetime import UTC, datetime
from functools import lru_cache

from markupsafe import Markup, escape

from quadloom.model.timestamps import readable_time


def when(at: float) -> Markup:
    """To the minute."""
    if not at:
        return Markup("–")
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%Y-%m-%d %H:%M\u00a0UTC")
    )


def instant(at: float) -> Markup:
    """To the second, for what happens now."""
    iso = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    return Markup('<time datetime="{}">{}</time>').format(iso, f"{iso[:10]} {iso[11:19]}\u00a0UTC")


def moment(at: float) -> str:
    """To the second, as plain text."""
    return readable_time(at)


def ago(clock: Callable[[], float], at: float) -> Markup:
    """The age in words; the time itself, with its zone, is in the element and shown when the pointer is on it."""
    if not at:
        return Markup("–")
    iso = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    words = _age(clock() - at)
    return Markup(f'<time datetime="{iso}" title="{iso[:10]} {iso[11:19]} UTC">{words}</time>')


def _age(age: float) -> str:
    if age <= -60.0:  # less than a minute is two clocks that differ
        return "in the future"
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if age >= length:
            return counted(int(age // length), unit) + " ago"
    return "just now"


def number(value: float | int) -> str:
    """Groups of three separated by a narrow no-break space, as in ISO 80000."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}".replace(",", "\u202f")
    return f"{int(value):,}".replace(",", "\u202f")


def counted(value: int, noun: str, ending: str = "s") -> str:
    """`1 page`, `2 pages`."""
    return f"{number(value)} {noun}{'' if value == 1 else ending}"


def size(value: int) -> str:
    number = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def percent(value: float) -> str:
    return f"{100 * value:.0f}\u00a0%" if value >= 0.1 or value == 0 else f"{100 * value:.1f}\u00a0%"


def seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def span(value: float) -> str:
    """A length of time: `45 s`, `3 min`, `2 h`, `5 d`."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if value >= length:
            return f"{value / length:.0f} {unit}"
    return f"{value:.0f} s"


def sentence(text: str) -> str:
    """With a capital at its begin, unless it begins with a URL or an address of this site."""
    first = text.partition(" ")[0]
    return text if "/" in first else text[:1].upper() + text[1:]


_COMMAND = re.compile(r"`([^`]+)`")
_ADDRESS = re.compile(r"(?<![^\s(])/[a-z][a-z./-]*[a-z]")


def with_links(text: str, addresses: Container[str]) -> Markup:
    """Escaped, with a link for every word that is one of these addresses of the site, and `commands` as code."""

    def linked(match: re.Match[str]) -> str:
        return f'<a href="{match[0]}">{match[0]}</a>' if match[0] in addresses else match[0]

    return Markup(_COMMAND.sub(r"<code>\1</code>", _ADDRESS.sub(linked, str(escape(text)))))


def snippet(text: str) -> Markup:
    """Escaped first; only then do the index's two marks around matching words become elements."""
    return Markup(str(escape(text)).replace("\x02", "<mark>").replace("\x03", "</mark>"))


_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")


def date_words(text: str) -> str:
    """A time as people read it: `2026-05-24T17:30:00+00:00` → `2026-05-24 17:30`. Any other text stays as it is."""
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return text
    zone = match.group(3) or ""
    return f"{match.group(1)} {match.group(2)}" + (f" {zone}" if zone not in ("", "Z", "+00:00", "+0000") else "")


# A page of results has sixty facets, thirty types and twenty links of the menus. One call for each, instead of five
# expressions of a template, halves the cost of rendering it.


def facet_link(href: str, chosen: bool, value: str, label: str, count: int) -> Markup:
    current = ' aria-current="true"' if chosen else ""
    return Markup(
        f'<a href="{escape(href)}"{current}><span title="{escape(value)}">{escape(label)}</span> '
        f'<span class="count">{number(count)}</span></a>'
    )


@lru_cache(maxsize=4096)
def type_link(href: str, iri: str, name: str) -> Markup:
    return Markup(f'<a class="tag" href="{escape(href)}" title="{escape(iri)}">{escape(name)}</a>')


@lru_cache(maxsize=256)
def menu_links(entries: Iterable[tuple[str, str]], path: str) -> Markup:
    """Items of a list; the page at `path` is marked as the current one."""
    return Markup(
        "\n".join(
            f'<li><a href="{escape(place)}"{_CURRENT if path == place else ""}>{escape(name)}</a></li>'
            for place, name in entries
        )
    )


_CURRENT = ' aria-current="page"'


def place(url: str) -> str:
    """The end of a URL, for a narrow column."""
    tail = url.partition("//")[2].rstrip("/")
    return tail if len(tail) <= 40 else f"…{tail[-38:]}"
