"""Links of an HTML page, each with its position and surrounding words, to tell results from boilerplate."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import lxml.etree
import lxml.html
import msgspec

from quadloom.crawling.topical.forms.html_forms import parse_html
from quadloom.model.url import canonical, host_of, resolve, site_of

MAX_ANCHORS = 3000
_DEPTH = 6  # ancestors of a link in its signature
_SPACE = re.compile(r"\s+")
_DIGITS = re.compile(r"\d+")
_BLOCK_CHARS = 1200  # a longer block is not a single result
_SKIP = frozenset(("script", "style", "noscript", "template"))
_NO_PAGES = re.compile(
    r"(?i)\.(jpe?g|jpe|png|gif|webp|avif|bmp|ico|tiff?|heic|psd|mp3|m4a|ogg|oga|opus|wav|flac|aac|mp4|m4v|mov|avi|mkv|webm|"
    r"wmv|mpe?g|zip|t?gz|bz2|xz|7z|rar|tar|exe|msi|dmg|iso|apk|deb|rpm|jar|woff2?|ttf|otf|eot|css|js|map|swf)$"
)
_INLINE = frozenset(
    ("b", "strong", "i", "em", "span", "font", "small", "big", "mark", "u", "s", "sub", "sup", "code", "q", "var",
     "data", "time", "output", "bdi", "bdo", "abbr", "cite", "samp", "kbd", "tt", "label")
)  # fmt: skip


class Anchor(msgspec.Struct, frozen=True):
    """`signature`: tags and classes of the elements around the link, without numbers: equal for results of one list.
    `shape`: its URL without digits and values. `block`: words of the largest element around it without another
    target."""

    url: str
    key: str
    text: str
    signature: str
    shape: str
    block: str = ""
    rel: str = ""


class PageOutline(msgspec.Struct, frozen=True):
    """The links and texts of a page."""

    url: str
    title: str
    anchors: tuple[Anchor, ...]
    texts: tuple[str, ...] = ()  # the visible texts between tags, in order
    lines: tuple[str, ...] = ()  # short texts outside links, which may state the number of results
    nofollow: bool = False  # meta robots asks not to follow links

    @property
    def longest(self) -> str:
        """The longest text: the same for copies of an article in different templates."""
        return max(self.texts, key=len, default="")


def read_outline(body: bytes | str, url: str) -> PageOutline:
    """The outline of a page; empty if it is not HTML."""
    tree = parse_html(body)
    if tree is None:
        return PageOutline(url, "", ())
    base = url
    for element in tree.iter("base"):
        base = resolve(element.get("href") or "", url) or url
        break
    elements: list[tuple[lxml.html.HtmlElement, str]] = []
    targets: dict[lxml.html.HtmlElement, set[str]] = {}
    for element in tree.iter("a"):
        target = resolve((element.get("href") or "").strip(), base)
        if target is None or len(elements) >= MAX_ANCHORS:
            continue
        target = unwrapped(target)
        elements.append((element, target))
        _note_target(element, target, targets)
    blocks: dict[lxml.html.HtmlElement, str] = {}
    anchors = tuple(_anchor(element, target, targets, blocks) for element, target in elements)
    heading = tree.find(".//title")
    title = _folded(heading.text_content()) if heading is not None else ""
    return PageOutline(url, title, anchors, *_texts(tree), _says_nofollow(tree))


def _says_nofollow(tree: lxml.html.HtmlElement) -> bool:
    robots = [meta.get("content") or "" for meta in tree.iter("meta") if (meta.get("name") or "").lower() == "robots"]
    words = {word.strip() for content in robots for word in content.lower().split(",")}
    return bool(words & {"nofollow", "none"})


def _note_target(element: lxml.html.HtmlElement, target: str, targets: dict[lxml.html.HtmlElement, set[str]]) -> None:
    """Add a target to the element and to its ancestors, as far as a block could extend."""
    node: lxml.html.HtmlElement | None = element
    for _ in range(_DEPTH):
        if node is None:
            return
        targets.setdefault(node, set()).add(target)
        node = node.getparent()


def _anchor(
    element: lxml.html.HtmlElement,
    target: str,
    targets: dict[lxml.html.HtmlElement, set[str]],
    blocks: dict[lxml.html.HtmlElement, str],
) -> Anchor:
    chain: list[str] = []
    node = element.getparent()
    block = element
    alone = True
    while node is not None and len(chain) < _DEPTH:
        chain.append(f"{node.tag}.{_DIGITS.sub('', node.get('class') or '')}")
        alone = alone and len(targets.get(node, ())) == 1
        if alone:
            block = node
        node = node.getparent()
    text = _folded(element.text_content()) or element.get("title") or ""
    return Anchor(
        url=target,
        key=canonical(target),
        text=text[:300],
        signature=f"a.{_DIGITS.sub('', element.get('class') or '')} {' '.join(chain)}",
        shape=shape_of(target),
        block=_block_text(block, element, blocks),
        rel=element.get("rel") or "",
    )


def _block_text(
    block: lxml.html.HtmlElement, element: lxml.html.HtmlElement, blocks: dict[lxml.html.HtmlElement, str]
) -> str:
    """The words of a result without those of its link. In a table row or definition list they may be in the next cell.

    The words of a block are cached: thousands of links to one target may share a block, and reading it for each would
    be quadratic.
    """
    own = _folded(element.text_content())
    if block is not element:
        words = blocks.get(block)
        if words is None:
            words = blocks[block] = _folded(block.text_content())[: _BLOCK_CHARS + len(own)]
        if words != own:
            return words.replace(own, " ", 1).strip()[:_BLOCK_CHARS]
    tail = (block.tail or "") + " "
    following = block.getnext()
    if following is not None and following.tag != "a" and following.find(".//a") is None:
        tail += following.text_content()
    return _folded(tail[: 2 * _BLOCK_CHARS])[:_BLOCK_CHARS]


def _texts(tree: lxml.html.HtmlElement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parts: list[str] = []
    lines: list[str] = []
    line: list[str] = []
    body = tree.find("body")
    top = body if body is not None else tree
    for event, node in lxml.etree.iterwalk(top, events=("start", "end", "comment", "pi")):
        tag = node.tag if isinstance(node.tag, str) else ""
        if tag and tag not in _INLINE:
            _end_line(line, lines)
        text = node.tail if event != "start" else (None if tag in _SKIP else node.text)
        if text and not text.isspace():
            folded = _folded(text)
            parts.append(folded)
            if event != "start" or tag not in ("a", "option"):
                line.append(folded)
    _end_line(line, lines)
    return tuple(parts[:5000]), tuple(lines[:2000])


def _end_line(line: list[str], lines: list[str]) -> None:
    """A line is what a reader sees in a row: "<b>77</b> results" is one."""
    if line:
        whole = " ".join(line)
        if len(whole) < 120:
            lines.append(whole)
        line.clear()


def unwrapped(url: str) -> str:
    """The target of a tracking redirect on the same site (`/out?u=https://…`), or the URL itself."""
    if "%3A%2F%2F" not in url and "%3a%2f%2f" not in url and url.count("://") < 2:
        return url
    for _, value in parse_qsl(urlsplit(url).query):
        if value.startswith(("http://", "https://")):
            target = resolve(value)
            if target is not None and site_of(host_of(target)) == site_of(host_of(url)):
                return target
    return url


def is_page(url: str) -> bool:
    """False if the suffix of the path says that there is no text to judge: a picture, sound, film, archive, program."""
    return not _NO_PAGES.search(urlsplit(url).path)


def shape_of(url: str) -> str:
    """The pattern of a URL: host, path with numbers as #, names of its parameters."""
    parts = urlsplit(url)
    names = "&".join(sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}))
    return f"{parts.netloc}{_DIGITS.sub('#', parts.path)}?{names}"


def _folded(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
