"""Plain text: nothing to state, but words to search in. A list of URLs, one a line, is a sitemap in its text form."""

from __future__ import annotations

from itertools import islice

from quadloom.model.link import Link
from quadloom.model.url import resolve
from quadloom.syntaxes.html.text import fold
from quadloom.syntaxes.registry import Context

_SCHEMES = ("http://", "https://")


def read(context: Context) -> None:
    """Keep the text, folded, up to the limit; of a list of URLs, the links."""
    limit = context.settings.limits.text_chars
    text = context.text
    context.facts.text = fold(text[: 2 * limit])[:limit]
    if text.lstrip("\ufeff \t\r\n").startswith(_SCHEMES):
        _read_list(context, text.split())


def _read_list(context: Context, words: list[str]) -> None:
    """sitemaps.org: one URL a line and nothing else. A single sentence after a URL makes it an ordinary text."""
    if not all(word.lstrip("\ufeff").startswith(_SCHEMES) for word in words):
        return
    targets = (target for word in words if (target := resolve(word.lstrip("\ufeff"), context.url)))
    unique = dict.fromkeys(islice(targets, context.settings.limits.links_per_page))
    context.links += [Link(target, context.url, "sitemap") for target in unique]
