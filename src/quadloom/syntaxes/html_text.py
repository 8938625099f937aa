"""The main text of a page, without menus, banners and footers.

Its purposes are search and change detection, so it must be cheap, and it must not change when a banner does. Four rules,
all by structure: the page's own `<main>` (or its only `<article>`) is believed; what HTML or ARIA calls navigation,
header, footer, aside, form or dialogue is left out, and so is what its class calls a menu, a cookie notice or the like;
a block that is mostly links is a list of links, not text; where too little remains, the rules go one by one.

The walk is lexbor's own (30 ns a node); Python sees each node once and asks two cheap questions.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

ENOUGH = 140  # characters; less than a short paragraph is no main text

_ASIDE = "nav,header,footer,aside,form,dialog,menu,script,style,noscript,template,svg,select,button,iframe,object"
_ROLES = (
    "[hidden],[aria-hidden=true],[role=navigation],[role=banner],[role=contentinfo],[role=complementary],[role=search],"
    "[role=dialog],[role=alert],[role=alertdialog],[role=menu]"
)
_NEVER = "script,style,noscript,template,svg,iframe,object,select"
_NOISE = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|breadcrumbs?|cookies?|consent|banner|advert\w*|ads?|promo|sponsor\w*|sidebar"
    r"|footer|masthead|share|sharing|social|newsletter|popup|modal|pagination|pager|skip-?link|related|toolbar)(?:$|[\s_-])",
    re.I,
)
# Elements that stay within a line: words on both sides belong together ("w<b>or</b>d").
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q ruby rb rt s samp small span "
    "strike strong sub sup time tt u var wbr".split()
)
_FOLDABLE = str.maketrans(dict.fromkeys("\n\t\r\f\x0b\xa0\u2028\u2029\x00", " "))


def main_text(tree: LexborHTMLParser, limit: int) -> str:
    """Main text with whitespace folded, a newline between blocks, at most `limit` characters."""
    body = tree.body
    if body is None:
        return ""
    root = _main(tree)
    if root is not None:
        text = _blocks(root, _excluded(root, f"{_ASIDE},{_ROLES}"), limit, keep_links=False)
        if len(text) >= ENOUGH:
            return text
        text = _blocks(root, _excluded(root, _NEVER), limit, keep_links=True)
        if len(text) >= ENOUGH:
            return text
    excluded = _excluded(body, f"{_ASIDE},{_ROLES}")
    excluded.update(_noisy(body))
    text = _blocks(body, excluded, limit, keep_links=False)
    if len(text) >= ENOUGH:
        return text
    return _blocks(body, _excluded(body, _NEVER), limit, keep_links=True)


def fold(text: str) -> str:
    """Whitespace folded to single spaces. By `replace`, which is five times as fast as split and join on long text."""
    if not text.isprintable():
        text = text.translate(_FOLDABLE) if not text.isascii() else _fold_ascii(text)
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()


def _fold_ascii(text: str) -> str:
    for space in "\n\t\r\f\x0b\x00":
        if space in text:
            text = text.replace(space, " ")
    return text


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    mains = tree.css("main,[role=main]")
    if mains:
        return mains[0]
    articles = tree.tags("article")
    return articles[0] if len(articles) == 1 else None


def _excluded(root: LexborNode, selector: str) -> set[int]:
    return {node.mem_id for node in root.css(selector)}


def _noisy(body: LexborNode) -> list[int]:
    found = []
    for node in body.css("div[class],div[id],section[class],section[id],ul[class],ul[id],table[class],table[id]"):
        attributes = node.attributes
        if _NOISE.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}"):
            found.append(node.mem_id)
    return found


def _blocks(root: LexborNode, excluded: set[int], limit: int, *, keep_links: bool) -> str:
    """Texts of the blocks below `root`, in order. `linked` counts characters inside links of the current block."""
    excluded.discard(root.mem_id)
    kept: list[str] = []
    block: list[str] = []
    size = linked = 0
    skip_to = -1  # identity of the node at which an excluded element ends; 0 = never
    for node in root.traverse(include_text=True, skip_empty=False):
        if skip_to >= 0:
            if node.mem_id != skip_to:
                continue
            skip_to = -1
        tag = node.tag
        if tag == "-text":
            block.append(node.text_content or "")
            continue
        if tag in _INLINE:
            if tag == "a":
                linked += len(node.text())
            if node.mem_id not in excluded:
                continue
        if block:
            size += _close(block, linked, kept, keep_links)
            block = []
            linked = 0
            if size > limit:
                break
        if node.mem_id in excluded:
            skip_to = _after(node, root)
    if block:
        _close(block, linked, kept, keep_links)
    return "\n".join(kept)[:limit]


def _close(block: list[str], linked: int, kept: list[str], keep_links: bool) -> int:
    raw = "".join(block)
    if not keep_links and linked * 2 > len(raw):
        return 0
    text = fold(raw)
    if text:
        kept.append(text)
    return len(text)


def _after(node: LexborNode, root: LexborNode) -> int:
    """Identity of the first node behind an element's subtree, within `root`; 0 where there is none."""
    at: LexborNode | None = node
    last = root.mem_id
    while at is not None and at.mem_id != last:
        following = at.next
        if following is not None:
            return following.mem_id
        at = at.parent
    return 0
