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

The work is lexbor's: elements within a line are unwrapped, excluded ones unlinked, and the text nodes that then touch
each other merged (.1 µs a node), so that one native call returns the blocks. This changes the tree: it runs when all
syntaxes have read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from selectolax.lexbor import LexborNode

from quadloom.model.link import Link
from quadloom.model.url import resolve
from quadloom.syntaxes.html.tree import tag_ids
from quadloom.syntaxes.registry import Context, Nodes

ENOUGH = 140  # characters; less than a short paragraph is no main text
ENOUGH_IN_MAIN = 25  # in an element that the page itself calls its main part: more than "Loading, please wait"
MAX_FIELD = 20_000  # characters of headings, of texts of links and of images

_BORDER = "\0"  # between blocks; no HTML text can hold it
_NEVER = ("script", "style", "noscript", "svg", "iframe", "object", "select", "template")
_IN_MAIN = ("nav", "dialog", "menu", "button")
_ASIDE = (*_IN_MAIN, "footer", "aside", "form")
_ROLE_NAMES = "navigation search dialog alert alertdialog menu menubar toolbar banner"
_ROLES_IN_MAIN = frozenset(_ROLE_NAMES.split())
_ROLES = _ROLES_IN_MAIN | {"contentinfo", "complementary"}
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
_INLINE = tuple(_INLINE_NAMES.split())
_MAIN_SIGNS = (b'role="main', b"role=main", b"role='main", b"role =")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CONTAINERS = ("div", "section", "ul", "table")
_ENTRIES = frozenset(tag_ids("li dt dd td th tr tbody thead tfoot"))
_HIGHEST_COLUMN = 12  # elements between the heading and its column
_LINE = frozenset(tag_ids(_INLINE_NAMES))


def read_text(context: Context) -> None:
    """The page's text, its headings, and the texts of links and images in its main part. Changes the tree."""
    limit = context.settings.limits.text_chars
    nodes = context.nodes
    root = _main(context)
    if root is not None:
        _empty(nodes, (*_NEVER, *_IN_MAIN))
        _empty_by_role(context, root, _ROLES_IN_MAIN)
        length, facts = _state(context, nodes, root, limit), context.facts
        # A single article may also be a short part of a page; who writes <main> means it.
        if length >= ENOUGH or (
            root.tag != "article" and (length >= ENOUGH_IN_MAIN or facts.headings or facts.link_texts)
        ):
            return
        nodes = context.reparsed()
    body = nodes.tree.body
    if body is None:
        return
    _empty(nodes, (*_NEVER, *_ASIDE))
    _empty_headers(nodes)
    _empty_by_role(context, body, _ROLES)
    _empty_by_class(nodes)
    _empty_menus(nodes, body, context.link_texts)
    if _state(context, nodes, body, limit) < ENOUGH:
        nodes = context.reparsed()
        _empty(nodes, _NEVER)
        _state(context, nodes, nodes.tree.body or body, limit)


def fold(text: str) -> str:
    """Fold whitespace to single blanks. Most texts need only their ends cut, and to see that costs least."""
    if text.isprintable() and "  " not in text:  # printable: no space but the plain one
        return text.strip(" ")
    return " ".join((text.replace("\u200b", " ") if "\u200b" in text else text).split())


def _main(context: Context) -> LexborNode | None:
    """The element that the page itself calls its main part."""
    mains = context.elements("main")
    if not mains and any(sign in context.utf8 for sign in _MAIN_SIGNS):
        mains = context.tree.css("[role=main]")
    if mains:
        return mains[0]
    articles = context.elements("article")
    return articles[0] if len(articles) == 1 else None


def _state(context: Context, nodes: Nodes, root: LexborNode, limit: int) -> int:
    """Set the texts of what is left below `root`; returns the length of its body. Unwraps all inline elements."""
    facts = context.facts
    places = _Places(nodes, root)
    links = zip(nodes.named("a"), context.link_texts, strict=False)
    facts.link_texts = _joined([text for node, text in links if text and places.of(node) == _BELOW])
    images = [node for node in nodes.named("img") if places.of(node) == _BELOW]
    facts.image_texts = _joined([node.attributes.get("alt") or "" for node in images])
    headings = [(name, node, places.of(node)) for name in _HEADINGS for node in nodes.named(name)]
    # A first heading outside of the main part is the page's all the same.
    above = [fold(node.text_lexbor() or "") for name, node, place in headings if place == _BESIDE and name == "h1"]
    facts.headings = _joined([*above, *(node.text_lexbor() or "" for _, node, place in headings if place == _BELOW)])
    for name in _INLINE:
        for node in nodes.named(name):
            node.unwrap(True)  # and delete it if it is empty, since it would keep two texts apart
    for node in nodes.named("-comment"):
        node.decompose(False)
    root.merge_text_nodes()
    blocks = _folded(root.text(separator=_BORDER, skip_empty=True))
    facts.text = "\n".join([*filter(None, above), *blocks])[:limit]
    return len(facts.text)


_BELOW, _BESIDE, _LEFT_OUT = 1, 2, 3


class _Places:
    """Where nodes stand: below the main part, elsewhere in the page, or in what was left out."""

    __slots__ = ("_known",)

    def __init__(self, nodes: Nodes, root: LexborNode) -> None:
        self._known = {nodes.top: _BESIDE, root.mem_id: _BELOW}

    def of(self, node: LexborNode) -> int:
        known = self._known
        path: list[int] = []
        place = _LEFT_OUT
        at = node.parent
        while at is not None:
            number = at.mem_id
            found = known.get(number)
            if found is not None:
                place = found
                break
            path.append(number)
            at = at.parent
        for number in path:
            known[number] = place
        return place


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(_folded(_BORDER.join(texts)))[:MAX_FIELD]


def _folded(text: str) -> list[str]:
    """What `fold` makes of the parts between borders, without empty ones."""
    parts = []
    for part in text.replace("\n", " ").replace("\u200b", " ").split(_BORDER):  # at once: a page has hundreds of parts
        part = " ".join(part.split()) if "  " in part or not part.isprintable() else part.strip(" ")
        if part:
            parts.append(part)
    return parts


def _empty(nodes: Nodes, names: Iterable[str]) -> None:
    """Leave out the contents of all elements with these names."""
    for name in names:
        for node in nodes.named(name):
            _empty_node(node)


def _empty_node(node: LexborNode) -> None:
    """The element itself stays, so that it keeps the texts on both its sides apart. Nothing is freed."""
    while (child := node.child) is not None:
        child.decompose(False)


def _empty_headers(nodes: Nodes) -> None:
    """Headers without a heading: those of the site, not of the page."""
    headers = nodes.named("header")
    if not headers:
        return
    titled: set[int] = set()
    for name in ("h1", "h2"):
        for node in nodes.named(name):
            at = node.parent
            while at is not None and at.mem_id not in titled:
                titled.add(at.mem_id)
                at = at.parent
    for node in headers:
        if node.mem_id not in titled:
            _empty_node(node)


def _empty_by_role(context: Context, root: LexborNode, roles: frozenset[str]) -> None:
    """Elements that are hidden, or that ARIA calls something other than content."""
    source = context.utf8
    wanted = [selector for sign, selector in _ROLE_SELECTORS if sign in source]
    if not wanted:
        return
    for node in root.css(",".join(wanted)):
        attributes = node.attributes
        role = attributes.get("role")
        if role is None or role.lower() in roles or "hidden" in attributes:
            _empty_node(node)


_ROLE_SELECTORS = ((b"role=", "[role]"), (b"hidden", "[hidden],[aria-hidden=true]"))


def _empty_by_class(nodes: Nodes) -> None:
    for name in _CONTAINERS:
        for node in nodes.named(name):
            attributes = node.attributes
            if attributes and _NOISE.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}"):
                _empty_node(node)


class _LinkList:
    """A block that holds links: an enumeration or a table, or the element around the links themselves."""

    __slots__ = ("before_heading", "linked", "node", "size")

    def __init__(self, node: LexborNode, before_heading: bool) -> None:
        self.node = node
        self.linked = 0  # characters of its links
        self.size = 0  # and of all its text
        self.before_heading = before_heading


def _empty_menus(nodes: Nodes, body: LexborNode, texts: list[str]) -> None:
    """Leave out lists of links that are not content."""
    lists = [one for one in _link_lists(nodes, body, texts) if one.linked * 2 > one.size]
    if not lists:
        return
    whole = len(body.text_lexbor() or "")
    prose = whole - sum(one.size for one in lists)
    column = _column(nodes, body, whole)
    places = _Places(nodes, column) if column is not None else None
    for one in lists:
        if one.before_heading:
            content = False
        elif places is not None:
            content = places.of(one.node) == _BELOW
        else:
            content = one.linked * 2 > prose
        if not content:
            _empty_node(one.node)


def _link_lists(nodes: Nodes, body: LexborNode, texts: list[str]) -> list[_LinkList]:
    found: dict[int, _LinkList] = {}
    around: dict[int, LexborNode] = {}  # parent of a link -> the block that it belongs to
    places = _Places(nodes, body)
    for number, (node, text) in enumerate(zip(nodes.named("a"), texts, strict=False)):
        parent = node.parent
        if parent is None:
            continue
        block = around.get(parent.mem_id)
        if block is None:
            block = around[parent.mem_id] = _block(parent)
        known = found.get(block.mem_id)
        if known is None:
            known = found[block.mem_id] = _LinkList(block, number < nodes.links_before_heading)
        known.linked += len(text or node.text_lexbor() or "")
    alive = [one for one in found.values() if one.node.mem_id != body.mem_id and places.of(one.node) == _BELOW]
    for one in alive:
        one.size = len(one.node.text_lexbor() or "")
    return alive


def _block(node: LexborNode) -> LexborNode:
    """The enumeration or table of which this is an entry; else the block that it is or stands in."""
    at = node
    while at.tag_id in _LINE and (outer := at.parent) is not None:
        at = outer
    while at.tag_id in _ENTRIES and (outer := at.parent) is not None:
        at = outer
    return at


def _column(nodes: Nodes, body: LexborNode, whole: int) -> LexborNode | None:
    """The element, smaller than the body, that holds the first heading and most of the text."""
    headings = nodes.named("h1")
    at = headings[0].parent if headings else None
    for _ in range(_HIGHEST_COLUMN):
        if at is None or at.mem_id == body.mem_id:
            break
        if len(at.text_lexbor() or "") * 2 > whole:
            return at
        at = at.parent
    return None


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
