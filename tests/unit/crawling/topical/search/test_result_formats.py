"""What a site's own search may answer: any bytes. A reader returns what it can read and never raises, because it runs
in a thread of the crawl."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quadloom.crawling.topical.search import engines, hosted, result_formats, site_indexes
from quadloom.crawling.topical.search.results import next_form
from quadloom.crawling.topical.search.totals import total_of

URL = "http://site.example/search?q=whale"
READERS: dict[str, Callable[[bytes, str], object]] = {
    "feed": result_formats.read_feed,
    "wordpress": result_formats.read_wordpress,
    "mediawiki": result_formats.read_mediawiki,
    "discourse": result_formats.read_discourse,
    "solr": result_formats.read_solr,
    "algolia": hosted.read_algolia,
    "searxng": hosted.read_searxng,
    "brave": hosted.read_brave,
    "sphinx": site_indexes.read_sphinx,
    "documents": site_indexes.read_documents,
    "sitemap": site_indexes.read_sitemap,
    "description": engines.read_description,
    "actions": engines.search_actions,
    "engines": engines.engine_leads,
    "description links": engines.description_links,
    "docsearch": hosted.docsearch_leads,
    "form of the next page": next_form,
    "total": lambda body, url: total_of(body.decode("utf-8", "replace").splitlines(), url, 10),
}
VALUES = (
    b"null", b"true", b"1", b"-1", b"1e308", b'"\xc2\xb2"', b'"' + b"9" * 6000 + b'"', b"9" * 6000, b'"\\ud83d"',
    b"[]", b"{}", b"[[]]", b"[null]", b'[{"url": 1, "link": {}, "title": [], "id": null}]', b'"http://[::1"',
    b'{"rendered": 1}', b'["http://[", "\\u0000"]', b'[{"url": "http://[::1", "title": {"rendered": 5}}]',
)  # fmt: skip
MEMBERS = (
    b"hits", b"nbHits", b"nbPages", b"page", b"results", b"web", b"query", b"search", b"searchinfo", b"totalhits",
    b"posts", b"topics", b"grouped_search_result", b"response", b"docs", b"numFound", b"start", b"docnames", b"titles",
    b"terms", b"filenames", b"continue", b"sroffset", b"title", b"location", b"text", b"url", b"@graph",
    b"potentialAction", b"target", b"topic_id", b"objectID", b"hierarchy",
)  # fmt: skip


def hostile() -> list[bytes]:
    bodies = [
        b"", b"\x00", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b'{"a": "\xff"}', b'["\xed\xa0\x80"]', b"1e9999",
        b"\xef\xbb\xbf{}", b"Search.setIndex({" + b'"a":[' * 50_000, b'Search.setIndex({"docnames": "\xff"})',
    ]  # fmt: skip
    for value in VALUES:
        nested = [b"%s", b'{"query": %s}', b'{"web": %s}', b'{"response": %s}', b'{"hits": [%s]}', b'{"results": [%s]}']
        members = b", ".join(b'"%s": %s' % (name, value) for name in MEMBERS)
        bodies += [value, *(outer % (b"{%s}" % members) for outer in nested), b"[{%s}]" % members]
        bodies += [b'{"%s": %s}' % (name, value) for name in MEMBERS]
        bodies += [b'{"query": {"%s": %s}, "response": {"%s": %s}}' % (name, value, name, value) for name in MEMBERS]
    digits = ("²", "٣", "9" * 6000, "-1", "", " 5 ", "1e5")
    for number in digits:
        text = number.encode()
        bodies += [
            b'<rss xmlns:o="http://a9.com/-/spec/opensearch/1.1/"><channel><o:totalResults>%s</o:totalResults>'
            b"<o:startIndex>%s</o:startIndex><item><link>http://[::1</link></item></channel></rss>" % (text, text),
            b'<OpenSearchDescription><Url type="text/html" indexOffset="%s" pageOffset="%s" template="http://[{searchTerms}'
            b'"/></OpenSearchDescription>' % (text, text),
            b'<a href="?q=whale&page=%s">%s</a><p>%s results</p><p>1-10 of %s</p>' % (text, text, text, text),
        ]
    bodies.append(b'<script type="application/ld+json">{"potentialAction": ' + b"[" * 3000 + b"</script>")
    bodies.append(b'<script type="application/ld+json">' + b"[" * 100_000 + b"</script>")
    return bodies


BODIES = hostile()


@pytest.mark.parametrize("name", READERS)
def test_a_reader_never_raises(name: str) -> None:
    wrong = []
    for body in BODIES:
        try:
            READERS[name](body, URL)
        except Exception as error:
            wrong.append((body[:120], repr(error)[:100]))
    assert not wrong, (len(wrong), wrong[:5])
