"""Generated pages that resemble a typical web page: about 38 KB, 108 links, a menu, an article, a footer, some data.

The proportions (bytes of script and style, links per page, depth of nesting) follow the sample of real pages that the
budget of 1.0 CPU-ms per page was set on. The generator is seeded: two runs measure the same bytes.
"""

from __future__ import annotations

import json
import random

_WORDS_NAMES = (
    "weave loom thread graph quad page site link query index store crawl polite robot delay fetch parse tree "
    "node statement subject predicate object literal language river mountain harbour bridge market street "
    "garden library museum concert theatre festival summer winter morning evening traveller merchant captain "
    "painter"
)
_WORDS = _WORDS_NAMES.split()


def page(seed: int = 1, *, kilobytes: int = 38, links: int = 108) -> bytes:
    """One HTML page of about the given size with about the given number of links."""
    rng = random.Random(seed)
    head = _head(rng, seed)
    menu = "".join(_item(rng, f"/section/{n}") for n in range(links * 4 // 10))
    footer = "".join(_item(rng, f"https://partner{n}.example/{_slug(rng)}") for n in range(links * 2 // 10))
    wanted = kilobytes * 1024 - len(head) - len(menu) - len(footer) - 2200
    body = _article(rng, wanted, links * 4 // 10)
    return (
        f"<!DOCTYPE html>\n<html lang='en-GB'>\n{head}\n<body class='page page--article'>\n"
        f"<header class='site-header'><div class='wrap'><a class='logo' href='/'>"
        "<img src='/static/logo.svg' alt='Home'>"
        f"</a><nav aria-label='Main'><ul class='menu'>{menu}</ul></nav></div></header>\n"
        f"<main id='content'>{body}</main>\n"
        f"<aside class='related'><h2>Related</h2><ul>{_item(rng, '/related/a')}{_item(rng, '/related/b')}</ul></aside>"
        f"<footer><ul>{footer}</ul><p>Write to <a href='mailto:desk@news.example?subject=Hi'>the desk</a>.</p></footer>"
        f"<script>{'window.dataLayer=window.dataLayer||[];' * 20}</script>\n</body>\n</html>\n"
    ).encode()


def _head(rng: random.Random, seed: int) -> str:
    title = _sentence(rng, 6)
    data = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": title,
        "datePublished": "2024-05-06T07:08:09Z",
        "author": {"@type": "Person", "name": "Ada Weaver", "url": "https://news.example/people/ada"},
        "publisher": {"@type": "Organization", "name": "The Loom", "logo": "https://news.example/logo.png"},
        "image": [f"https://news.example/img/{seed}.jpg"],
    }
    style = "".join(f".c{n}{{margin:{n}px;padding:0 {n}px;color:#12{n:02d}ab}}" for n in range(60))
    return (
        f"<head><meta charset='utf-8'><title>{title} | The Loom</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='description' content='{_sentence(rng, 20)}'><meta name='author' content='Ada Weaver'>"
        "<meta name='robots' content='index, follow, max-image-preview:large'>"
        f"<link rel='canonical' href='https://news.example/articles/{seed}'>"
        f"<link rel='alternate' hreflang='de' href='https://news.example/de/articles/{seed}'>"
        "<link rel='alternate' type='application/rss+xml' title='News' href='/feed.xml'>"
        "<link rel='stylesheet' href='/static/app.css'><link rel='icon' href='/favicon.ico'>"
        f"<meta property='og:title' content='{title}'><meta property='og:type' content='article'>"
        f"<meta property='og:image' content='https://news.example/img/{seed}.jpg'>"
        f"<meta property='og:url' content='https://news.example/articles/{seed}'>"
        "<meta property='og:site_name' content='The Loom'><meta name='twitter:card' content='summary_large_image'>"
        f"<script type='application/ld+json'>{json.dumps(data)}</script><style>{style}</style></head>"
    )


def _article(rng: random.Random, size: int, links: int) -> str:
    parts = [
        "<article itemscope itemtype='https://schema.org/Article'>",
        f"<h1 itemprop='headline'>{_sentence(rng, 7)}</h1>",
        "<p class='byline'>By <span itemprop='author'>Ada Weaver</span> "
        "<time itemprop='datePublished' datetime='2024-05-06'>6 May 2024</time></p>",
    ]
    length = sum(map(len, parts))
    number = 0
    while length < size:
        text = _sentence(rng, rng.randint(40, 90))
        if number < links:
            at = text.find(" ", len(text) // 2) + 1
            text = f"{text[:at]}<a href='{_href(rng, number)}'>{_sentence(rng, 3)}</a> {text[at:]}"
        block = f"<div class='block block-{number}' data-id='{number}'><p>{text}</p></div>\n"
        if number % 9 == 4:
            block += (
                f"<figure><img src='/img/{number}.jpg' width='640' height='480' alt='{_sentence(rng, 4)}'></figure>"
            )
        if number % 12 == 6:
            block += f"<h2 id='s{number}'>{_sentence(rng, 5)}</h2>"
        parts.append(block)
        length += len(block)
        number += 1
    parts += [f"<p><a href='{_href(rng, n)}'>{_sentence(rng, 3)}</a></p>" for n in range(number, links)]
    parts.append("</article>")
    return "".join(parts)


def _item(rng: random.Random, href: str) -> str:
    return f"<li class='menu__item'><a class='menu__link' href='{href}'><span>{_sentence(rng, 2)}</span></a></li>\n"


def _href(rng: random.Random, number: int) -> str:
    forms = (
        f"/articles/{_slug(rng)}",
        f"https://news.example/articles/{_slug(rng)}",
        f"{_slug(rng)}.html",
        f"https://other{number}.example/{_slug(rng)}?id={number}",
        f"../archive/{_slug(rng)}",
        "#comments",
    )
    return forms[min(rng.randrange(12), 5) if number % 7 else 0]


def _slug(rng: random.Random) -> str:
    return "-".join(rng.choice(_WORDS) for _ in range(4))


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words)).capitalize()
