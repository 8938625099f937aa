"""Search results as data instead of pages: RSS and Atom, and the JSON of common engines.

Endpoints and members are as documented: WordPress REST `wp/v2/search`, MediaWiki `action=query&list=search`, Discourse
`search.json`, Solr `select`. All of them give titles and links; most give totals, independent of the human language.
"""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import lxml.etree

from quadloom.crawling.topical.search.json_answers import decoded
from quadloom.crawling.topical.search.results import ResultPage, SearchResult
from quadloom.model.url import resolve

_TAG = re.compile(r"<[^>]{0,500}>")
_SPACE = re.compile(r"\s+")
Json = dict[str, object]


def read_feed(body: bytes, url: str) -> ResultPage:
    """Items of an RSS or Atom document, with OpenSearch totals if given."""
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = lxml.etree.fromstring(body, parser)
    except lxml.etree.XMLSyntaxError:
        return ResultPage()
    if root is None:
        return ResultPage()
    results: list[SearchResult] = []
    total = -1
    next_url = ""
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        name = lxml.etree.QName(element).localname.lower()
        if name == "totalresults" and (element.text or "").strip().isdecimal():
            total = int((element.text or "").strip()[:9])
        elif name == "link" and element.get("rel") == "next":
            next_url = resolve(element.get("href") or "", url) or ""
        elif name in ("item", "entry"):
            result = _feed_item(element, url, len(results))
            if result is not None:
                results.append(result)
    return ResultPage(tuple(results), total, next_url)


def _feed_item(item: lxml.etree._Element, url: str, rank: int) -> SearchResult | None:
    link, title, words = "", "", ""
    for child in item:
        if not isinstance(child.tag, str):
            continue
        name = lxml.etree.QName(child).localname.lower()
        text = (child.text or "").strip()
        if name == "link" and child.get("rel") in (None, "alternate") and not link:
            link = child.get("href") or text
        elif name == "title":
            title = plain(text)
        elif name in ("description", "summary", "content") and not words:
            words = plain(text)
    target = resolve(link, url) if link else None
    return SearchResult(target, title, words[:1200], rank) if target else None


def read_wordpress(body: bytes, url: str) -> ResultPage:
    """`/wp-json/wp/v2/search`: a list of {title, url}; `wp/v2/posts` has {title: {rendered}, link} instead."""
    rows = decoded(body)
    results: list[SearchResult] = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict):
            continue
        title = row.get("title")
        if isinstance(title, dict):
            title = title.get("rendered")
        excerpt = row.get("excerpt")
        words = excerpt.get("rendered") if isinstance(excerpt, dict) else ""
        place = str(row.get("url") or row.get("link") or "")
        target = resolve(place, url) if place else None
        if target:
            results.append(SearchResult(target, plain(str(title or "")), plain(str(words or ""))[:1200], len(results)))
    return ResultPage(tuple(results))


def read_mediawiki(body: bytes, url: str) -> ResultPage:
    """`list=search` with `meta=siteinfo`, whose `articlepath` gives the URLs of titles."""
    query = _member(decoded(body), "query")
    info = _member(query, "searchinfo")
    general = _member(query, "general")
    path = str(general.get("articlepath") or "/wiki/$1")
    base = resolve(str(general.get("server") or ""), url) or url
    rows = query.get("search")
    results: list[SearchResult] = []
    for row in rows if isinstance(rows, list) else []:
        title = str(row.get("title") or "") if isinstance(row, dict) else ""
        target = (
            resolve(path.replace("$1", quote(title.replace(" ", "_"), safe="/:@!$'()*,;")), base) if title else None
        )
        if target:
            results.append(SearchResult(target, title, plain(str(row.get("snippet") or ""))[:1200], len(results)))
    total = info.get("totalhits")
    return ResultPage(tuple(results), total if isinstance(total, int) else -1)


def read_discourse(body: bytes, url: str) -> ResultPage:
    """`search.json`: topics with titles, posts with blurbs."""
    tree = decoded(body)
    tree = tree if isinstance(tree, dict) else {}
    posts, topics = tree.get("posts"), tree.get("topics")
    blurbs: dict[object, str] = {}
    for post in posts if isinstance(posts, list) else []:
        if isinstance(post, dict):
            blurbs.setdefault(post.get("topic_id"), plain(str(post.get("blurb") or "")))
    results: list[SearchResult] = []
    for topic in topics if isinstance(topics, list) else []:
        if isinstance(topic, dict) and isinstance(topic.get("id"), int):
            target = resolve(f"/t/{topic.get('slug') or '-'}/{topic['id']}", url)
            if target:
                snippet = blurbs.get(topic["id"], "")[:1200]
                results.append(SearchResult(target, plain(str(topic.get("title") or "")), snippet, len(results)))
    return ResultPage(tuple(results))


def read_solr(body: bytes, url: str) -> ResultPage:
    """`select?wt=json`: documents with any of the usual names for URL, title and text."""
    response = _member(decoded(body), "response")
    rows = response.get("docs")
    results: list[SearchResult] = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            place = _first(row, "url", "link", "uri", "id")
            target = resolve(place, url) if place else None
            if target:
                title, words = _first(row, "title", "name", "title_s"), _first(row, "content", "description", "text")
                results.append(SearchResult(target, plain(title), plain(words)[:1200], len(results)))
    total = response.get("numFound")
    return ResultPage(tuple(results), total if isinstance(total, int) else -1)


READERS = {
    "rss": read_feed,
    "wordpress": read_wordpress,
    "mediawiki": read_mediawiki,
    "discourse": read_discourse,
    "solr": read_solr,
}


def plain(text: str) -> str:
    """The text of an excerpt with markup."""
    return _SPACE.sub(" ", unescape(_TAG.sub(" ", text))).strip()


def _member(tree: object, name: str) -> Json:
    value = tree.get(name) if isinstance(tree, dict) else None
    return value if isinstance(value, dict) else {}


def _first(row: Json, *names: str) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, str) and value:
            return value
    return ""
