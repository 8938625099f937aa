"""Whole indexes in one request: the index files of documentation builders and static sites, and sitemaps.

Sphinx (`searchindex.js`), MkDocs (`search/search_index.json`), Hugo and Jekyll (`index.json`, lunr documents),
sitemaps. If the search runs in the visitor's browser, its index is a file, and one request gives all titles of the
site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

import lxml.etree

from quadloom.crawling.topical.search.json_answers import decoded
from quadloom.crawling.topical.search.result_formats import plain
from quadloom.crawling.topical.search.results import SearchResult
from quadloom.model.url import host_of, resolve, site_of

MAX_ENTRIES = 50_000
_SLUG = re.compile(r"[^\W\d_]{2,}|\d{4,}")
_OBJECT = re.compile(rb"[^({]*+\(?\s*+(\{.*\})\s*+\)?;?\Z", re.DOTALL)


def read_sphinx(body: bytes, url: str) -> list[SearchResult]:
    """`Search.setIndex({...})`: names, titles and words of documents."""
    match = _OBJECT.match(body.strip())
    tree = decoded(match.group(1)) if match else None
    if not isinstance(tree, dict):
        return []
    names, titles, terms = tree.get("docnames"), tree.get("titles"), tree.get("terms")
    if not isinstance(names, list) or not isinstance(titles, list):
        return []
    words = _sphinx_words(terms, len(names))
    results = []
    for number, (name, title) in enumerate(zip(names[:MAX_ENTRIES], titles, strict=False)):
        target = resolve(f"{name}.html", url)
        if target:
            results.append(SearchResult(target, plain(str(title)), " ".join(words[number]), number))
    return results


def _sphinx_words(terms: object, size: int) -> list[list[str]]:
    words: list[list[str]] = [[] for _ in range(size)]
    for word, places in (terms if isinstance(terms, dict) else {}).items():
        for place in places if isinstance(places, list) else [places]:
            if isinstance(place, int) and 0 <= place < size and len(words[place]) < 400:
                words[place].append(str(word))
    return words


def read_documents(body: bytes, url: str) -> list[SearchResult]:
    """MkDocs `{docs: [{location, title, text}]}`, and the lists that Hugo and Jekyll themes write for lunr or fuse."""
    tree = decoded(body.removeprefix(b"\xef\xbb\xbf"))
    url = url.removesuffix("search/search_index.json")  # locations of MkDocs are relative to the root of the site
    rows = tree.get("docs") or tree.get("documents") or tree.get("items") if isinstance(tree, dict) else tree
    found: dict[str, SearchResult] = {}
    for row in (rows if isinstance(rows, list) else [])[:MAX_ENTRIES]:
        if not isinstance(row, dict):
            continue
        place = next((row[n] for n in ("location", "permalink", "url", "uri", "href", "link") if row.get(n)), None)
        target = resolve(str(place), url) if place is not None else None
        if target is None:
            continue
        text = next((row[n] for n in ("text", "content", "contents", "summary", "description") if row.get(n)), "")
        old = found.get(target)  # MkDocs lists every section; the sections of a page become one result
        title = old.title if old else plain(str(row.get("title") or ""))
        snippet = f"{old.snippet if old else ''} {plain(str(text))}".strip()[:2000]
        found[target] = SearchResult(target, title, snippet, old.rank if old else len(found))
    return list(found.values())


def read_sitemap(body: bytes, url: str) -> tuple[list[SearchResult], list[str]]:
    """(pages with the words of their URL as title, further sitemaps)."""
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = lxml.etree.fromstring(body, parser)
    except lxml.etree.XMLSyntaxError:
        return [], []
    if root is None:
        return [], []
    places = [(element.text or "").strip() for element in root.iter("{*}loc")][:MAX_ENTRIES]
    targets = [target for place in places if (target := resolve(place, url)) is not None]
    targets = [target for target in targets if site_of(host_of(target)) == site_of(host_of(url))]
    if lxml.etree.QName(root).localname == "sitemapindex":
        return [], targets
    return [SearchResult(target, slug_words(target), "", rank) for rank, target in enumerate(targets)], []


def slug_words(url: str) -> str:
    """The words of a URL: `/2020/paris-museums.html` → `paris museums`."""
    parts = urlsplit(url)
    path = unquote(
        parts.path.rpartition(".")[0] if parts.path.endswith((".html", ".htm", ".php", ".aspx")) else parts.path
    )
    return " ".join(word for word in _SLUG.findall(path.replace("_", " ")) if not word.isdigit())


def has_titles(results: Iterable[SearchResult]) -> bool:
    """Whether at least three results have titles; URLs such as /node/17 give none."""
    worded = [result for result in results if len(result.title.split()) >= 2]
    return len(worded) >= 3
