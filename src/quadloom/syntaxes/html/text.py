"""The main text of a page, without menus, banners and footers; and plain text documents.

The text is for search and change detection, so it must be cheap, and it must not change when a banner does. Four rules,
all by structure: the page's own `<main>` (or its only `<article>`) is trusted; what HTML or ARIA calls navigation,
header, footer, aside, form or dialogue is left out, and so is what its class calls a menu, a cookie notice or the like;
a block that is mostly links is a list of links, not text; if too little remains, the rules are dropped one by one.

The walk is lexbor's own (30 ns a node); Python sees each node once and asks two cheap questions.
"""

from __future__ import annotations

import re
from itertools import islice

from selectolax.lexbor import LexborNode

from quadloom.model.link import Link
from quadloom.model.url import resolve
from quadloom.syntaxes.html.tree import TEXT, tag_ids
from quadloom.syntaxes.registry import Context

ENOUGH = 140  # characters; less than a short paragraph is no main text

_NEVER_NAMES = "script style noscript template svg iframe object select"
_ASIDE_NAMES = "nav header footer aside form dialog menu button"
_ROLES_NAMES = "navigation banner contentinfo complementary search dialog alert alertdialog menu menubar toolbar"
_ROLES = frozenset(_ROLES_NAMES.split())
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
_SPACES = "\n\t\r\f\xa0\u2003\u2009\u200b\u2028\u3000"
_EDGES = " \n\t\r\f"


_INLINE = frozenset(tag_ids(_INLINE_NAMES))
(_ANCHOR,) = tag_ids("a")
_NEVER = frozenset(tag_ids(_NEVER_NAMES))
_ASIDE = frozenset(tag_ids(_ASIDE_NAMES)) | _NEVER


def main_text(context: Context) -> str:
    """Main text with whitespace folded and a newline between blocks, up to the limit on characters."""
    body = context.tree.body
    if body is None:
        return ""
    limit = context.settings.limits.text_chars
    root = _main(context)
    if root is not None:
        text = _blocks(root, _ASIDE, _hidden(root), limit, keep_links=False)
        if len(text) >= ENOUGH:
            return text
        text = _blocks(root, _NEVER, set(), limit, keep_links=True)
        if len(text) >= ENOUGH:
            return text
    text = _blocks(body, _ASIDE, _hidden(body) | _noisy(body), limit, keep_links=False)
    if len(text) >= ENOUGH:
        return text
    return _blocks(body, _NEVER, set(), limit, keep_links=True)


def fold(text: str) -> str:
    """Fold whitespace to single spaces. `replace` is several times as fast as split and join on text."""
    text = text.strip(_EDGES)
    if not text.isascii() or "\n" in text or "\t" in text or "\r" in text or "\f" in text:
        for space in _SPACES:
            if space in text:
                text = text.replace(space, " ")
        text = text.strip(" ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _main(context: Context) -> LexborNode | None:
    """The element that the page itself calls its main part."""
    mains = context.elements("main") or context.tree.css("[role=main]")
    if mains:
        return mains[0]
    articles = context.elements("article")
    return articles[0] if len(articles) == 1 else None


def _hidden(root: LexborNode) -> set[int]:
    """Elements that are hidden, or that ARIA calls something other than content."""
    found = set()
    for node in root.css("[role],[hidden],[aria-hidden=true]"):
        attributes = node.attributes
        role = attributes.get("role")
        if role is None or role.lower() in _ROLES or "hidden" in attributes:
            found.add(node.mem_id)
    return found


def _noisy(body: LexborNode) -> set[int]:
    found = set()
    for node in body.css("div[class],div[id],section[class],section[id],ul[class],ul[id],table[class],table[id]"):
        attributes = node.attributes
        if _NOISE.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}"):
            found.add(node.mem_id)
    return found


def _blocks(root: LexborNode, tags: frozenset[int], excluded: set[int], limit: int, *, keep_links: bool) -> str:
    """Texts of the blocks below `root`, in order. `linked` counts characters inside links of the current block.

    The loop sees some 600 nodes a page, so what it often needs is in local names.
    """
    texts: list[str] = []
    block: list[str] = []
    size = linked = 0
    skip_to = -1  # identity of the node at which an excluded element ends; 0 = never
    text_tag, inline, anchor = TEXT, _INLINE, _ANCHOR
    walk = root.traverse(include_text=True, skip_empty=False)
    next(walk, None)  # the root itself is never excluded
    for node in walk:
        if skip_to >= 0:
            if node.mem_id != skip_to:
                continue
            skip_to = -1
        tag = node.tag_id
        if tag == text_tag:
            block.append(node.text_content or "")
            continue
        leave = tag in tags or (excluded and node.mem_id in excluded)
        if tag in inline and not leave:
            if tag == anchor:
                linked += len(node.text_lexbor() or "")  # collected natively, at half the cost of `text()`
            continue
        if block:
            text = "".join(block)
            block = []
            if _is_text(text, linked, keep_links):
                texts.append(text)
                size += len(text)
                if size > limit:
                    break
            linked = 0
        if leave:
            skip_to = _after(node, root)
    text = "".join(block)
    if _is_text(text, linked, keep_links):
        texts.append(text)
    # Block by block: most have no space to fold but at their ends, and looking for double spaces in the joined text
    # costs 3 ns a character (140 against 55 µs a page).
    return "\n".join([fold(text) for text in texts])[:limit]


def _is_text(block: str, linked: int, keep_links: bool) -> bool:
    """Whether a block has words, and not mostly those of links."""
    return (keep_links or linked * 2 <= len(block)) and bool(block) and not block.isspace()


def _after(node: LexborNode, root: LexborNode) -> int:
    """Identity of the first node behind an element's subtree, within `root`; 0 if there is none."""
    at: LexborNode | None = node
    last = root.mem_id
    while at is not None and at.mem_id != last:
        following = at.next
        if following is not None:
            return following.mem_id
        at = at.parent
    return 0


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
