"""The search channel of a site: found once, validated by a real and a nonsense query, stored with an expiry.

`open_site` is a request sequence that tries, in the order of cost and certainty: OpenSearch description, SearchAction,
engine interfaces and index files, a hosted search, HTML form, sitemap, the web search engines of the caller and, only
if the page hints at a search that needs a script, two guessed templates. `query_channel` sends one query to a known
channel.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote_plus, urlencode

import msgspec

from quadloom.crawling.topical.access import RequestSequence, SiteRequest, SiteResponse
from quadloom.crawling.topical.anchors import PageOutline, read_outline
from quadloom.crawling.topical.forms.classifier import SearchForm, find_search_form
from quadloom.crawling.topical.search import engines, hosted, site_indexes
from quadloom.crawling.topical.search.engines import ChannelKind, Format, SearchLead
from quadloom.crawling.topical.search.result_formats import READERS as OWN_READERS
from quadloom.crawling.topical.search.results import (
    ResultPage,
    SearchResult,
    Wrapper,
    learn_wrapper,
    next_form,
    read_results,
)
from quadloom.model.url import canonical, host_of, resolve, site_of

READERS = {
    **OWN_READERS,
    "algolia": hosted.read_algolia,
    "searxng": hosted.read_searxng,
    "brave": hosted.read_brave,
}
HOSTED: frozenset[str] = frozenset(("algolia", "websearch"))
INDEXES: frozenset[str] = frozenset(("sphinx", "documents", "sitemap"))
GUESSES = ("/search?q={searchTerms}", "/?s={searchTerms}")
_HINT = re.compile(rb"(?i)<(input|button|div|a|svg|i|span)\b[^>]{0,300}\bsearch")
_LONG_WORD = re.compile(r"[^\W\d_]{5,}")
_MAX_SITEMAPS = 3
MOST_REQUESTS = 14  # to find out how a site can be searched
_DATA = ("application/json", "text/json", "+json", "javascript", "xml", "text/plain")


class SearchChannel(msgspec.Struct, frozen=True):
    """How to query a site. `kind` "links" = no search was found, only links can be followed."""

    kind: ChannelKind
    home: str
    format: Format = "html"
    template: str = ""
    page_size: int = 0
    form: SearchForm | None = None
    wrapper: Wrapper = Wrapper()
    learned_at: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def searchable(self) -> bool:
        """Whether it takes queries; index files and links do not."""
        return self.kind != "links" and self.format not in INDEXES


class SiteOpening(msgspec.Struct, frozen=True):
    """An opened site: its channel, the answer to the first query, the entries of an index, and its home page."""

    channel: SearchChannel
    first: ResultPage = ResultPage()
    entries: tuple[SearchResult, ...] = ()
    home: PageOutline | None = None
    tried: tuple[str, ...] = ()  # leads that did not work


def open_site(
    home: str,
    query: str,
    nonsense: str,
    now: float,
    known: SearchChannel | None = None,
    further: Sequence[SearchLead] = (),
) -> RequestSequence[SiteOpening]:
    """Find the search channel of a site. `nonsense`: a word that no page has. `known`: a channel that has not expired;
    if it takes queries, it is used as it is. `further`: leads to try if the site has no search of its own."""
    if known is not None and known.searchable:
        page = yield from query_channel(known, query)
        return SiteOpening(known, page or ResultPage())
    return (yield from _thrifty(_open(home, query, nonsense, now, known, further)))


def _thrifty(opening: RequestSequence[SiteOpening]) -> RequestSequence[SiteOpening]:
    """No request twice, and few in all: attempts share requests, and a site without a search should cost little."""
    answers: dict[SiteRequest, SiteResponse | None] = {}
    try:
        request = next(opening)
        while True:
            same = msgspec.structs.replace(request, purpose="page")
            if same not in answers:
                answers[same] = (yield request) if len(answers) < MOST_REQUESTS else None
            request = opening.send(answers[same])
    except StopIteration as end:
        opened: SiteOpening = end.value
        return opened


def _open(
    home: str, query: str, nonsense: str, now: float, known: SearchChannel | None, further: Sequence[SearchLead]
) -> RequestSequence[SiteOpening]:
    answer = yield SiteRequest(home, purpose="home")
    if answer is None or not answer.good:  # not learned: the next crawl tries again
        return SiteOpening(SearchChannel("links", home), tried=("home page not reached",))
    outline = read_outline(answer.body, answer.url)
    if known is not None and known.kind == "links" and not further:
        return SiteOpening(known, home=outline)
    tried: list[str] = []
    leads = yield from _descriptions(answer)
    leads += engines.search_actions(answer.body, answer.url) + engines.engine_leads(answer.body, answer.url)
    leads += hosted.docsearch_leads(answer.body, answer.url)
    for lead in leads:
        opening = yield from _try_lead(lead, answer, outline, query, nonsense, now)
        if opening is not None:
            return msgspec.structs.replace(opening, home=outline, tried=tuple(tried))
        tried.append(f"{lead.kind}: {lead.template}")
    form = find_search_form(answer.body, answer.url)
    if form is not None:
        opening = yield from _validate_form(form, answer.url, outline, query, nonsense, now)
        if opening is not None:
            return msgspec.structs.replace(opening, home=outline, tried=tuple(tried))
        tried.append(f"form: {form.action}")
    opening = yield from _fall_back(answer, outline, query, nonsense, now, further)
    return msgspec.structs.replace(opening, home=outline, tried=tuple(tried))


def _validate_form(
    form: SearchForm, home: str, outline: PageOutline, query: str, nonsense: str, now: float
) -> RequestSequence[SiteOpening | None]:
    """The form as it is; if it finds nothing, with other options of its selects, by the query alone."""
    channel = SearchChannel("form", home, form=form, learned_at=now)
    opening = yield from _validate(channel, outline, query, nonsense)
    if opening is not None and opening.first.results:
        return opening
    for other in form.alternatives():
        channel = SearchChannel("form", home, form=other, learned_at=now)
        found = yield from _validate(channel, outline, query, nonsense, attempts=1)
        if found is not None:
            return found
    return opening


def query_channel(
    channel: SearchChannel,
    query: str,
    page: int = 0,
    next_url: str = "",
    next_fields: tuple[tuple[str, str], ...] = (),
) -> RequestSequence[ResultPage | None]:
    """Query a channel. `page` counts from 0; `next_url` and `next_fields`: from the page before. None = no answer."""
    request = _search_request(channel, query, page, next_url)
    if request is not None and next_url and next_fields:
        request = SiteRequest(next_url, "post", next_fields, "search")
    if request is None:
        return ResultPage()
    answer = yield request
    form = channel.form
    if (answer is None or not answer.good) and form is not None and form.has_token and not next_url:
        fresh = yield SiteRequest(channel.home, purpose="home")  # the token may have expired
        renewed = find_search_form(fresh.body, fresh.url) if fresh is not None and fresh.good else None
        if renewed is not None and renewed.action == form.action:
            answer = yield _form_request(renewed, query)
    if answer is None or not answer.good:
        return None
    return _read(channel, answer, query)


def _search_request(channel: SearchChannel, query: str, page: int, next_url: str) -> SiteRequest | None:
    """None = there is no further page."""
    if next_url:
        return SiteRequest(next_url, purpose="search")
    if channel.form is not None:
        return _form_request(channel.form, query) if page == 0 else None
    if channel.format == "algolia":
        payload = hosted.algolia_payload(query, page)
        return SiteRequest(channel.template, "post", (), "search", payload=payload, headers=channel.headers)
    pages = any(mark in channel.template for mark in ("{page}", "{page0}", "{offset}", "{offset1}"))
    if page and not pages:
        return None
    return SiteRequest(
        filled(channel.template, query, page, channel.page_size), purpose="search", headers=channel.headers
    )


def _form_request(form: SearchForm, query: str) -> SiteRequest:
    if form.method == "get":
        return SiteRequest(form.url_for(query), purpose="search")
    return SiteRequest(form.action, "post", tuple(form.pairs(query)), "search", form.multipart)


def filled(template: str, query: str, page: int = 0, size: int = 0) -> str:
    """Fill in a template."""
    offset = page * (size or 10)
    values = {
        "{searchTerms}": quote_plus(query),
        "{page}": str(page + 1),
        "{page0}": str(page),
        "{offset}": str(offset),
        "{offset1}": str(offset + 1),
        "{count}": "20",
    }
    for mark, value in values.items():
        template = template.replace(mark, value)
    return template


def _outline_of(channel: SearchChannel, answer: SiteResponse, query: str) -> PageOutline:
    """The outline of an answer. A posted form has no query in its URL, but its paging links do, so it is added."""
    url = answer.url
    if channel.form is not None and channel.form.method == "post" and "?" not in url:
        url = f"{url}?{urlencode({channel.form.query_field: query})}"
    return read_outline(answer.body, url)


def _read(channel: SearchChannel, answer: SiteResponse, query: str) -> ResultPage:
    if channel.format == "html":
        page = read_results(_outline_of(channel, answer, query), channel.wrapper)
        if page.results and not page.next_url:
            url, fields = next_form(answer.body, answer.url)
            page = msgspec.structs.replace(page, next_url=url, next_fields=fields)
        return page
    page = READERS[channel.format](answer.body, answer.url)
    if channel.kind in HOSTED:  # the index may hold other sites too
        site = site_of(host_of(channel.home))
        own = tuple(result for result in page.results if site_of(host_of(result.url)) == site)
        return msgspec.structs.replace(page, results=own)
    total = answer.header("x-wp-total")
    return msgspec.structs.replace(page, total=int(total)) if total.isdecimal() and len(total) < 10 else page


def _descriptions(home: SiteResponse) -> RequestSequence[list[SearchLead]]:
    leads: list[SearchLead] = []
    for link in engines.description_links(home.body, home.url)[:1]:
        answer = yield SiteRequest(link, purpose="index")
        if answer is not None and answer.good:
            leads += engines.read_description(answer.body, answer.url)
    return leads


def _try_lead(
    lead: SearchLead, home: SiteResponse, outline: PageOutline, query: str, nonsense: str, now: float
) -> RequestSequence[SiteOpening | None]:
    channel = SearchChannel(
        lead.kind, home.url, lead.format, lead.template, lead.page_size, learned_at=now, headers=lead.headers
    )
    if lead.format not in INDEXES:
        return (yield from _validate(channel, outline, query, nonsense))
    answer = yield SiteRequest(lead.template, purpose="index")
    if answer is None or not answer.good:
        return None
    reader = site_indexes.read_sphinx if lead.format == "sphinx" else site_indexes.read_documents
    entries = reader(answer.body, answer.url)
    return SiteOpening(channel, entries=tuple(entries)) if entries else None


def _validate(
    channel: SearchChannel, home: PageOutline, query: str, nonsense: str, attempts: int = 3
) -> RequestSequence[SiteOpening | None]:
    """Accept a channel only if the answers to a real query and to a nonsense word differ, and the second is empty.
    `attempts`: words to try, the query and then words of the site."""
    if channel.format != "html":
        return (yield from _validate_data(channel, query, nonsense))
    request = _search_request(channel, nonsense, 0, "")
    empty = (yield request) if request else None
    if empty is None or not _is_html(empty):
        return None
    blank = _outline_of(channel, empty, nonsense)
    word = query
    for attempt in range(attempts):
        request = _search_request(channel, word, 0, "")
        answer = (yield request) if request else None
        if answer is None or not _is_html(answer):
            return None
        full = _outline_of(channel, answer, word)
        wrapper = learn_wrapper(full, blank)
        if wrapper is not None:
            channel = msgspec.structs.replace(channel, wrapper=wrapper)
            return SiteOpening(channel, _read(channel, answer, word) if word == query else ResultPage(total=0))
        if attempt + 1 == attempts:
            return None
        word = common_word(home, query) if attempt == 0 else ""
        if not word:
            word = yield from _word_of_inner_page(home)
        if not word:
            return None
    return None


def _validate_data(channel: SearchChannel, query: str, nonsense: str) -> RequestSequence[SiteOpening | None]:
    request = _search_request(channel, nonsense, 0, "")
    empty = (yield msgspec.structs.replace(request, purpose="probe")) if request else None
    if empty is None or not empty.good or not _is_data(empty) or _read(channel, empty, nonsense).results:
        return None
    page = yield from query_channel(channel, query)
    return SiteOpening(channel, page) if page is not None else None


def common_word(outline: PageOutline, without: str) -> str:
    """A word of the site itself, to test whether its search works if it has nothing on the topic. Empty = none.

    Only words of longer texts count: short texts are navigation, which no engine indexes.
    """
    counts = Counter(
        word for text in outline.texts if text.count(" ") >= 2 for word in _LONG_WORD.findall(text.lower())
    )
    ranked = sorted(counts, key=lambda word: (-min(counts[word], 3), -len(word), word))
    return next((word for word in ranked if word not in without.lower()), "")


def _word_of_inner_page(home: PageOutline) -> RequestSequence[str]:
    """If the home page has only images and menus: a word of the page in the middle of its links, rarely navigation."""
    same = [anchor for anchor in home.anchors if host_of(anchor.url) == host_of(home.url)]
    middle = [anchor for anchor in same if anchor.key != canonical(home.url)][len(same) // 2 :][:1]
    answer = (yield SiteRequest(middle[0].url, purpose="probe")) if middle else None
    if answer is None or not _is_html(answer):
        return ""
    known = set(home.texts)
    outline = read_outline(answer.body, answer.url)
    own = tuple(text for text in outline.texts if text not in known)
    return common_word(msgspec.structs.replace(outline, texts=own), "")


def _fall_back(
    home: SiteResponse, outline: PageOutline, query: str, nonsense: str, now: float, further: Sequence[SearchLead]
) -> RequestSequence[SiteOpening]:
    entries = yield from _sitemap(home.url)
    if entries and site_indexes.has_titles(entries):
        channel = SearchChannel("sitemap", home.url, "sitemap", learned_at=now)
        return SiteOpening(channel, entries=tuple(entries))
    for lead in further:
        found = yield from _try_lead(lead, home, outline, query, nonsense, now)
        if found is not None and found.first.results:
            return found
    if _HINT.search(home.body):
        for guess in GUESSES:
            template = engines.resolved_template(guess, home.url)
            channel = SearchChannel("template", home.url, "html", template, learned_at=now)
            opening = yield from _validate(channel, outline, query, nonsense, attempts=2)
            if opening is not None:
                return opening
    return SiteOpening(SearchChannel("links", home.url, learned_at=now))


def _sitemap(home: str) -> RequestSequence[list[SearchResult]]:
    pending = [resolve("/sitemap.xml", home) or home]
    entries: list[SearchResult] = []
    for _ in range(_MAX_SITEMAPS):
        if not pending:
            break
        answer = yield SiteRequest(pending.pop(0), purpose="sitemap")
        if answer is not None and answer.good and not _is_html(answer):
            pages, more = site_indexes.read_sitemap(answer.body, answer.url)
            entries += pages
            pending += more
    return entries


def _is_html(answer: SiteResponse) -> bool:
    return answer.good and (
        "html" in answer.content_type or (not answer.content_type and b"<html" in answer.body[:2000])
    )


def _is_data(answer: SiteResponse) -> bool:
    return any(mark in answer.content_type for mark in _DATA)
