"""Links of an HTML page: their target, kind and words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from urllib.parse import unquote

from quadloom.documents.syntaxes.html.elements import Elements, Values
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.link import Link, LinkKind

MAX_ANCHOR = 200  # characters of anchor text kept: more is a block that was made clickable
_LONGEST = 4 * MAX_ANCHOR  # characters looked at, white space included

_LINK = ("rel", "type", "href", "title", "hreflang")
_ANCHOR = ("href", "rel")

_NOFOLLOW = frozenset(("nofollow", "ugc", "sponsored"))
_KINDS: dict[str, LinkKind] = {
    "next": "next", "prev": "next", "previous": "next", "first": "next", "last": "next", "alternate": "alternate",
    "amphtml": "alternate", "feed": "feed", "canonical": "canonical", "describedby": "describedby",
    "meta": "describedby", "search": "search", "transformation": "stylesheet", "sitemap": "sitemap",
}  # fmt: skip
_FEED_TYPES = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"))
# Relations that serve the browser; such links are neither read nor followed.
_MACHINERY = frozenset(
    (
        "stylesheet", "icon", "shortcut", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "preload",
        "prefetch", "preconnect", "dns-prefetch", "modulepreload", "prerender", "manifest", "pingback", "fluid-icon",
        "apple-touch-startup-image", "image_src", "compression-dictionary", "expect",
    )
)  # fmt: skip
# These words say how a link is opened, not what it leads to.
_MANNERS = frozenset(
    ("noopener", "noreferrer", "external", "nofollow", "ugc", "sponsored", "bookmark", "opener", "noindex")
)
_SKIPPED = ("#", "javascript:", "data:", "tel:", "sms:", "about:", "blob:")
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?\Z")
_REFRESH = re.compile(r"\s*[\d.]+\s*[;,]?\s*(?:url\s*=\s*)?(['\"]?)(.+)", re.I | re.S)


def read_links(context: Context, resolver: ReferenceResolver) -> None:
    """Add the links of the page, its images and mail addresses to the context, up to the limit."""
    limit = context.settings.limits.links_per_page
    elements = context.all_elements
    for row in elements.values(elements.named("link")[:limit], _LINK):
        _add_link_element(context, row, resolver)
    anchors = elements.named("a") + elements.named("area")
    found = _targets(context, elements.values(anchors, _ANCHOR), resolver, limit)
    context.link_texts = texts = [""] * len(anchors)
    rows = zip(found, elements.texts([anchors[place] for place, _, _ in found], _LONGEST), strict=True)
    add, source, nofollow = context.links.append, context.url, context.facts.nofollow
    images: list[int] | None = None
    for (place, target, rel), anchor in rows:
        anchor = anchor.rstrip()
        if not anchor:
            images = elements.named("img") if images is None else images
            anchor = _image_text(elements, anchors[place], images)
        if "  " in anchor or not anchor.isprintable() or len(anchor) > MAX_ANCHOR:  # printable: no space but the plain
            anchor = _shortened(anchor)
        texts[place] = anchor
        if rel is None:
            add(Link(target, source, "plain", anchor, "", nofollow))
        else:
            words = rel.lower().split()
            refused = nofollow or not _NOFOLLOW.isdisjoint(words)
            add(Link(target, source, _kind_of_anchor(words), anchor, " ".join(words), refused))
    _read_sources(context, resolver, limit)


def _targets(
    context: Context, rows: list[Values], resolver: ReferenceResolver, limit: int
) -> list[tuple[int, str, str | None]]:
    """Place among the rows, target and `rel` of those that lead somewhere. Mail addresses go to the facts."""
    found: list[tuple[int, str, str | None]] = []
    room = limit - len(context.links)
    joined = resolver.plain([href for href, _ in rows])
    for place, (target, (href, rel)) in enumerate(zip(joined, rows, strict=True)):
        if target is None:
            if not href or href[0] == "#":
                continue
            target = resolver(href)
            if target is None:
                _add_mail(context, href)
                continue
        if len(found) < room:
            found.append((place, target, rel))
        else:
            context.find("too-many-links", f"more than {limit} links: the rest is left out", advice="use sitemaps")
            break
    return found


def read_refresh(context: Context, content: str, resolver: ReferenceResolver) -> None:
    """`<meta http-equiv=refresh content="0; url=…">`: a redirect stated by the page itself."""
    match = _REFRESH.match(content)
    if not match:
        return
    quote, rest = match.groups()
    target = resolver((rest.partition(quote)[0] if quote else rest).strip())
    if target and target != context.url:
        context.links.append(Link(target, context.url, "redirect", "", "", context.facts.nofollow))


def kind_of(words: list[str], media_type: str) -> LinkKind | None:
    """Kind of a `<link>` element or Link header; None for the machinery of a page."""
    for word in words:
        kind = _KINDS.get(word)
        if kind == "alternate" and "stylesheet" in words:
            return None
        if kind == "alternate" and media_type.partition(";")[0].strip().lower() in _FEED_TYPES:
            return "describedby" if "rdf" in media_type.lower() else "feed"
        if kind:
            return kind
    return "typed" if not _MACHINERY.issuperset(words) else None


def _add_link_element(context: Context, values: Values, resolver: ReferenceResolver) -> None:
    rel, media_type, href, title, language = values
    words = (rel or "").lower().split()
    kind = kind_of(words, media_type or "")
    if kind is None:
        return
    target = resolver((href or "").strip())
    if target is None:
        return
    if kind == "canonical" and not context.facts.canonical:
        context.facts.canonical = target
    anchor = title or language or ""
    nofollow = context.facts.nofollow or "nofollow" in words
    context.links.append(Link(target, context.url, kind, _shortened(anchor), " ".join(words), nofollow))


def _read_sources(context: Context, resolver: ReferenceResolver, limit: int) -> None:
    elements = context.all_elements
    images = context.facts.images
    for target in _sources(elements, elements.named("img")[:limit], resolver):
        images[target] = None
    frames = elements.named("iframe") + elements.named("frame") + elements.named("embed")
    for target in _sources(elements, frames, resolver) if frames else ():
        if target != context.url and len(context.links) < limit:
            context.links.append(Link(target, context.url, "embed", "", "", context.facts.nofollow))


def _sources(elements: Elements, numbers: list[int], resolver: ReferenceResolver) -> Iterator[str]:
    values = [value for (value,) in elements.values(numbers, ("src",))]
    for value, target in zip(values, resolver.plain(values), strict=True):
        if target is None and value and not value.startswith(_SKIPPED):
            target = resolver(value)
        if target is not None:
            yield target


def _kind_of_anchor(words: list[str]) -> LinkKind:
    for word in words:
        kind = _KINDS.get(word)
        if kind and kind != "canonical" and kind != "stylesheet":
            return kind
    return "plain" if _MANNERS.issuperset(words) else "typed"


def _shortened(text: str) -> str:
    return " ".join(text[:_LONGEST].split())[:MAX_ANCHOR]


def _image_text(elements: Elements, link: int, images: list[int]) -> str:
    """Words of a link that shows only a picture. `images` are all of the page."""
    for image in images[bisect_right(images, link) :]:
        at = elements.parent(image)
        while at > link:
            at = elements.parent(at)
        if at != link:
            break
        attributes = elements.attributes(image)
        if "alt" in attributes:
            return (attributes["alt"] or "").strip()
    return ""


def _add_mail(context: Context, href: str) -> None:
    scheme, _, value = href.strip().partition(":")
    if scheme.lower() != "mailto":
        return
    for part in unquote(value.partition("?")[0]).split(",")[:8]:
        address = part.strip()
        if _MAIL.match(address) and len(context.facts.mails) < 1000:
            context.facts.mails[address] = None
