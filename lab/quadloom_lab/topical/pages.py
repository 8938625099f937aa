"""Pages of a simulated site: articles, listings, result pages, feeds and the index files of documentation builders."""

from __future__ import annotations

import json
from html import escape
from urllib.parse import quote, quote_plus

from quadloom_lab.topical.sites import SitePlan

NUMBERED = frozenset(
    ("page", "p", "pg", "seite", "pn", "paged", "strana", "lap")
)  # parameters with page numbers; others are offsets
_PER_SECTION = 25
_HEADS = {
    "opensearch": '<link rel="search" type="application/opensearchdescription+xml" href="/osd.xml" title="Search">',
    "searchaction": '<script type="application/ld+json">{"@context":"https://schema.org","@type":"WebSite","url":"/",'
    '"potentialAction":{"@type":"SearchAction","target":{"@type":"EntryPoint","urlTemplate":"/search?q={term}"},'
    '"query-input":"required name=term"}}</script>',
    "wordpress": '<link rel="https://api.w.org/" href="/wp-json/"><meta name="generator" content="WordPress 6.5">',
    "mediawiki": '<meta name="generator" content="MediaWiki 1.41"><link rel="EditURI" type="application/rsd+xml" '
    'href="/w/api.php?action=rsd">',
    "discourse": '<meta name="generator" content="Discourse 3.2">',
    "sphinx": '<script src="_static/doctools.js"></script><script src="searchtools.js"></script>',
    "mkdocs": '<meta name="generator" content="mkdocs-1.5.3, mkdocs-material-9.5">',
}
_MORE = {
    "Search": "Read more", "Suche": "Mehr lesen", "Rechercher": "Lire la suite", "Go": "More", "Поиск": "Читать далее",
    "Hledat": "Číst dál", "Найти": "Подробнее", "検索": "続きを読む", "Keresés": "Tovább",
    "搜索": "阅读全文", "Buscar": "Leer más", "Zoeken": "Lees meer",
}  # fmt: skip
_EXTRAS = {
    "": "",
    "login": '<form action="/login" method="post"><input name="user"><input type="password" name="pw"><button>Log in'
    "</button></form>",
    "newsletter": '<form action="/subscribe" method="post"><input type="email" name="email" placeholder="E-mail">'
    "<button>Subscribe</button></form>",
}


class SitePages:
    """Renders pages from the plan; pure functions of the plan and the arguments."""

    def __init__(self, plan: SitePlan) -> None:
        self._plan = plan
        self._linked = [number for number, placed in enumerate(plan.documents) if not placed.orphan]
        self.sections = -(-len(self._linked) // _PER_SECTION)

    def title(self, number: int) -> str:
        return self._plan.documents[number].text.title

    def url(self, number: int) -> str:
        return f"http://{self._plan.host}{self._plan.documents[number].path}"

    def snippet(self, number: int, query: str) -> str:
        """Words around the first match, as engines show them."""
        words = self._plan.documents[number].text.words
        wanted = set(query.lower().split())
        at = next((place for place, word in enumerate(words) if word in wanted), 0)
        return " ".join(words[max(0, at - 10) : at + 18])

    def home(self) -> bytes:
        sections = "".join(f'<li><a href="/topics/{n}">Section {n + 1}</a></li>' for n in range(self.sections))
        recent = "".join(self._anchor(number) for number in self._linked[:8])
        return self._page(f"Home of {self._plan.host}", f"<ul>{sections}</ul><ul>{recent}</ul>")

    def section(self, number: int) -> bytes:
        part = self._linked[number * _PER_SECTION : (number + 1) * _PER_SECTION]
        return self._page(f"Section {number + 1}", f"<ul>{''.join(map(self._anchor, part))}</ul>")

    def article(self, number: int) -> bytes:
        placed = self._plan.documents[number]
        related = "".join(map(self._anchor, placed.links))
        return self._page(
            placed.text.title, f"<article><p>{placed.text.body}</p></article><aside><ul>{related}</ul></aside>"
        )

    def plain(self, title: str, text: str) -> bytes:
        return self._page(title, f"<p>{text}</p>")

    def robots(self) -> bytes:
        sitemap = f"Sitemap: http://{self._plan.host}/sitemap.xml\n" if self._plan.sitemap else ""
        return f"User-agent: *\nDisallow: /login\n{sitemap}".encode()

    def sitemap(self) -> bytes:
        rows = "".join(f"<url><loc>{escape(self.url(n))}</loc></url>" for n in range(len(self._plan.documents)))
        return (
            f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()
        )

    def description(self) -> bytes:
        template = f"http://{self._plan.host}/feed?q={{searchTerms}}&amp;pw={{startPage?}}"
        return (
            '<?xml version="1.0"?><OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>S'
            f'</ShortName><Url type="application/rss+xml" template="{template}"/></OpenSearchDescription>'
        ).encode()

    def feed(self, found: list[int], offset: int) -> bytes:
        items = "".join(
            f"<item><title>{escape(self.title(n))}</title><link>{escape(self.url(n))}</link>"
            f"<description>{self.snippet(n, '')}</description></item>"
            for n in found[offset : offset + self._plan.per_page]
        )
        return (
            '<?xml version="1.0"?><rss version="2.0" xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/"><channel>'
            f"<opensearch:totalResults>{len(found)}</opensearch:totalResults>{items}</channel></rss>"
        ).encode()

    def sphinx_index(self) -> bytes:
        documents = self._plan.documents
        names = [placed.path.strip("/").removesuffix(".html") for placed in documents]
        terms: dict[str, list[int]] = {}
        for number, placed in enumerate(documents):
            for word in set(placed.text.words):
                terms.setdefault(word, []).append(number)
        index = {"docnames": names, "titles": [placed.text.title for placed in documents], "terms": terms}
        return f"Search.setIndex({json.dumps(index)})".encode()

    def mkdocs_index(self) -> bytes:
        rows = [
            {"location": p.path.lstrip("/"), "title": p.text.title, "text": p.text.body} for p in self._plan.documents
        ]
        return json.dumps({"config": {"lang": ["en"]}, "docs": rows}).encode()

    def results(self, query: str, found: list[int], offset: int) -> bytes:
        look, size = self._plan.look, self._plan.per_page
        part = found[offset : offset + size]
        items = "".join(self._item(number, query) for number in part)
        ads = "".join(
            f'<div class="promo"><a href="/ad/{n}?q={quote_plus(query)}">Best {escape(query)} deals {n}</a> '
            f"{escape(query)} for less</div>"
            for n in range(self._plan.ads)
        )
        count = look.total.format(a=offset + 1, b=offset + len(part), n=f"{len(found):,}") if found else ""
        body = (
            f"<h1>{look.search_word}: {escape(query)}</h1><p class='count'>{count}</p>{ads}"
            f"<{look.list_tag} class='{look.item}-list'>{items}</{look.list_tag}>"
            f"{self._pager(query, len(found), offset)}"
        )
        return self._page(f"{look.search_word}: {query}", body)

    def _item(self, number: int, query: str) -> str:
        look = self._plan.look
        url = self._plan.documents[number].path
        if self._plan.tracked:
            url = f"/out?u={quote(self.url(number), safe='')}"
        return (
            f"<{look.item_tag} class='{look.item}'><{look.link_in}><a href='{escape(url)}'>"
            f"{escape(self.title(number))}</a></{look.link_in}>"
            f"<{look.snippet_tag}>{self.snippet(number, query)}</{look.snippet_tag}></{look.item_tag}>"
        )

    def _pager(self, query: str, total: int, offset: int) -> str:
        look, size = self._plan.look, self._plan.per_page
        if total <= size:
            return ""

        def link(at: int, text: str, rel: str = "") -> str:
            value = at // size + 1 if look.page_parameter in NUMBERED else at
            name = "s" if self._plan.search == "wordpress" else "q"
            path = {"wordpress": "/", "post-form": "/find"}.get(self._plan.search, "/search")
            href = f"{path}?{name}={quote_plus(query)}&amp;{look.page_parameter}={value}"
            return f'<a href="{href}"{rel}>{text}</a> '

        numbers = "".join(link(at, str(at // size + 1)) for at in range(0, min(total, 10 * size), size))
        onward = offset + size < total
        if look.next_text == "numbers" or not onward:
            return f"<div class='pages'>{numbers}</div>"
        if look.next_text.startswith("form:"):
            return self._turning_form(query, offset + size, look.next_text.removeprefix("form:"))
        if look.next_text == "rel":
            return f"<div class='pages'>{link(offset + size, 'more', ' rel=next')}</div>"
        return f"<div class='pages'>{numbers}{link(offset + size, look.next_text)}</div>"

    def _turning_form(self, query: str, at: int, label: str) -> str:
        look, search = self._plan.look, self._plan.search
        value = at // self._plan.per_page + 1 if look.page_parameter in NUMBERED else at
        name = "s" if search == "wordpress" else "q"
        path = {"wordpress": "/", "post-form": "/find"}.get(search, "/search")
        return (
            f'<form action="{path}"><input type="hidden" name="{name}" value="{escape(query)}"><input type="hidden" '
            f'name="{look.page_parameter}" value="{value}"><button>{label}</button></form>'
        )

    def _anchor(self, number: int) -> str:
        path, title = escape(self._plan.documents[number].path), escape(self.title(number))
        if self._plan.teaser != "title":
            shown = title if self._plan.teaser == "beside" else f"{self._plan.documents[number].text.day // 30} / 12"
            return f'<li><b>{shown}</b> <a href="{path}">{_MORE[self._plan.look.search_word]}</a></li>'
        return f'<li><a href="{path}">{title}</a></li>'

    def _page(self, title: str, main: str) -> bytes:
        plan = self._plan
        head = _HEADS.get(plan.search, "")
        return (
            f"<!doctype html><html><head><title>{escape(title)}</title>{head}</head><body><header><a href='/'>Home</a> "
            f"<a href='/about'>About</a> <a href='/contact'>Contact</a>{self._form()}{_EXTRAS[plan.extra]}</header>"
            f"<div id='{plan.look.wrapper}'><h1>{escape(title)}</h1>{main}</div>"
            "<footer><a href='/terms'>Terms</a> <a href='/privacy'>Privacy</a></footer></body></html>"
        ).encode()

    def _form(self) -> str:
        plan = self._plan
        word = plan.look.search_word
        if plan.search == "form":
            return (
                '<form action="/search"><select name="in"><option value="all" selected>All<option value="t">Titles'
                f'</select><input type="text" name="q" placeholder="{word}"><input type="submit" name="go" '
                f'value="{word}"></form>'
            )
        if plan.search == "post-form":
            return (
                '<form action="/find" method="post"><input type="hidden" name="token" value="t0k3n">'
                f'<input name="q" type="search"><input type="image" name="b" src="/search.png" alt="{word}"></form>'
            )
        if plan.search == "wordpress":
            return f'<form role="search" action="/"><input type="search" name="s" placeholder="{word}"></form>'
        return ""
