"""Search-engine detection: what a home page says about the search of its site (descriptions, actions, engines).

In order of trust: an OpenSearch description and a SearchAction are stated by the site itself; the traces of a known
engine lead to an interface that the engine documents. Nothing here sends a request; `channels` tries the templates.
"""

from __future__ import annotations

import re
from typing import Literal

import lxml.etree
import lxml.html
import msgspec

from quadloom.crawling.topical.forms.html_forms import parse_html
from quadloom.crawling.topical.search.json_answers import decoded
from quadloom.model.url import host_of, resolve, site_of

ChannelKind = Literal[
    "opensearch",
    "searchaction",
    "wordpress",
    "mediawiki",
    "discourse",
    "drupal",
    "solr",
    "sphinx",
    "mkdocs",
    "lunr",
    "algolia",
    "form",
    "sitemap",
    "websearch",
    "template",
    "links",
]
Format = Literal[
    "html",
    "rss",
    "wordpress",
    "mediawiki",
    "discourse",
    "solr",
    "sphinx",
    "documents",
    "sitemap",
    "algolia",
    "searxng",
    "brave",
]
_PLACEHOLDER = re.compile(r"\{([A-Za-z_:][\w:-]*)\??\}")
_MAX_SCRIPT = 200_000


class SearchLead(msgspec.Struct, frozen=True):
    """A possible search interface of a site. `template` has {searchTerms}, and {page}, {offset} or {count} if known."""

    kind: ChannelKind
    template: str
    format: Format = "html"
    page_size: int = 0
    headers: tuple[tuple[str, str], ...] = ()  # required by the interface, such as a key


def description_links(body: bytes | str, url: str) -> list[str]:
    """URLs of OpenSearch descriptions."""
    tree = parse_html(body)
    if tree is None:
        return []
    found = []
    for link in tree.iter("link"):
        if "search" in (link.get("rel") or "").lower().split() and "opensearch" in (link.get("type") or "").lower():
            target = resolve(link.get("href") or "", url)
            if target:
                found.append(target)
    return found[:3]


def read_description(body: bytes, url: str) -> list[SearchLead]:
    """Leads from an OpenSearch description; feeds first, since they state totals and need no wrapper."""
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = lxml.etree.fromstring(body, parser)
    except lxml.etree.XMLSyntaxError:
        return []
    if root is None:
        return []
    leads = []
    for element in root.iter("{*}Url"):
        media, raw = (element.get("type") or "").lower(), element.get("template") or ""
        if "suggest" in media or (element.get("rel") or "results") not in ("results", "collection"):
            continue
        template = _open_search_template(raw, url, (element.get("method") or "get").lower())
        if template:
            leads.append(SearchLead("opensearch", template, "rss" if "rss" in media or "atom" in media else "html"))
    return sorted(leads, key=lambda lead: lead.format == "html")


def _open_search_template(raw: str, url: str, method: str) -> str:
    if "{searchTerms" not in raw or method != "get":
        return ""
    names = {"searchterms": "{searchTerms}", "startpage": "{page}", "startindex": "{offset1}", "count": "{count}"}
    fixed = {"language": "*", "inputencoding": "UTF-8", "outputencoding": "UTF-8"}

    def known(match: re.Match[str]) -> str:
        name = match.group(1).lower()
        return names.get(name, fixed.get(name, ""))

    return resolved_template(_PLACEHOLDER.sub(known, raw), url)


def search_actions(body: bytes | str, url: str) -> list[SearchLead]:
    """Leads from schema.org SearchAction in JSON-LD or microdata."""
    tree = parse_html(body)
    if tree is None:
        return []
    templates: list[str] = []
    for script in tree.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json" and script.text:
            _walk(decoded(script.text[:_MAX_SCRIPT]), templates, 0)
    for item in tree.xpath("//*[contains(@itemtype, 'schema.org/SearchAction')]"):
        for target in item.xpath(".//*[@itemprop='target' or @itemprop='urlTemplate']"):
            templates.append(target.get("content") or target.get("href") or "")
    leads = []
    for raw in dict.fromkeys(templates):
        if len(_PLACEHOLDER.findall(raw)) == 1:
            template = resolved_template(_PLACEHOLDER.sub("{searchTerms}", raw), url)
            if template:
                leads.append(SearchLead("searchaction", template))
    return leads[:3]


def _walk(data: object, templates: list[str], depth: int) -> None:
    if depth > 12 or len(templates) > 20:
        return
    if isinstance(data, list):
        for item in data:
            _walk(item, templates, depth + 1)
    elif isinstance(data, dict):
        kinds = data.get("@type")
        if "SearchAction" in (kinds if isinstance(kinds, list) else [kinds]):
            targets = data.get("target")
            for target in targets if isinstance(targets, list) else [targets]:
                raw = target.get("urlTemplate") if isinstance(target, dict) else target
                if isinstance(raw, str):
                    templates.append(raw)
        for value in data.values():
            if isinstance(value, (dict, list)):
                _walk(value, templates, depth + 1)


def engine_leads(body: bytes | str, url: str) -> list[SearchLead]:
    """Leads to the documented interfaces of the engine that the page reveals."""
    tree = parse_html(body)
    if tree is None:
        return []
    generator = " ".join(
        meta.get("content") or "" for meta in tree.iter("meta") if (meta.get("name") or "").lower() == "generator"
    ).lower()
    links = {(link.get("rel") or "").strip(): link.get("href") or "" for link in tree.iter("link")}
    scripts = " ".join(script.get("src") or "" for script in tree.iter("script")).lower()
    leads: list[SearchLead] = []
    if "https://api.w.org/" in links or "wordpress" in generator:
        root = resolve(links.get("https://api.w.org/") or "/wp-json/", url) or url
        api = f"{root.rstrip('/')}/wp/v2/search?search={{searchTerms}}&per_page=50&page={{page}}"
        leads.append(_lead("wordpress", api, url, "wordpress", 50))
        leads.append(_lead("wordpress", "/?s={searchTerms}&feed=rss2&paged={page}", url, "rss"))
    if "mediawiki" in generator or "api.php" in links.get("EditURI", ""):
        api = (resolve(links.get("EditURI") or "/w/api.php", url) or url).partition("?")[0]
        query = "action=query&format=json&list=search&meta=siteinfo&srlimit=50&srsearch={searchTerms}&sroffset={offset}"
        leads.append(_lead("mediawiki", f"{api}?{query}", url, "mediawiki", 50))
    if "discourse" in generator:
        leads.append(_lead("discourse", "/search.json?q={searchTerms}&page={page}", url, "discourse"))
    if "drupal" in generator:
        leads.append(_lead("drupal", "/search/node?keys={searchTerms}", url, "html"))
    if "searchtools.js" in scripts or "sphinx" in generator or "documentation_options" in scripts:
        leads.append(_lead("sphinx", "searchindex.js", url, "sphinx"))
    if "mkdocs" in generator or "search/main.js" in scripts:
        leads.append(_lead("mkdocs", "search/search_index.json", url, "documents"))
    if "lunr" in scripts or "fuse" in scripts or "hugo" in generator or "jekyll" in generator:
        leads += [_lead("lunr", path, url, "documents") for path in ("index.json", "search.json")]
    return [lead for lead in leads if lead.template]


def _lead(kind: ChannelKind, template: str, url: str, format: Format, size: int = 0) -> SearchLead:
    return SearchLead(kind, resolved_template(template, url), format, size)


def resolved_template(template: str, url: str) -> str:
    """The absolute template; empty if it is not on the site of the page."""
    marks = {
        "{searchTerms}": "qlmark1",
        "{page}": "qlmark2",
        "{offset}": "qlmark3",
        "{offset1}": "qlmark4",
        "{count}": "qlmark5",
    }
    for mark, word in marks.items():
        template = template.replace(mark, word)
    target = resolve(template, url)
    if target is None or site_of(host_of(target)) != site_of(host_of(url)):
        return ""
    for mark, word in marks.items():
        target = target.replace(word, mark)
    return target
