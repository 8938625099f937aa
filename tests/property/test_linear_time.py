"""Functions that read foreign text where no deadline ends them: in the owner of a crawl, the fetch process, the server.
Long and repetitive texts take them no more than a moment of CPU, and raise nothing but our own errors."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from quadloom.asking.search import moment
from quadloom.asking.sparql.checks import check
from quadloom.asking.sparql.result_formats import without_formulas
from quadloom.asking.things.paths import comparable, parse_path, words
from quadloom.asking.things.selection import parse_condition
from quadloom.crawling.ingest.traps.shapes import trap
from quadloom.crawling.topical.anchors import read_outline
from quadloom.crawling.topical.search.results import next_form, next_url
from quadloom.crawling.topical.search.totals import total_of
from quadloom.documents import link_headers
from quadloom.documents.syntaxes.charset import charset_of, header_charset
from quadloom.errors import QuadloomError
from quadloom.fetching import robots
from quadloom.fetching.politeness import retry_after
from quadloom.model.link import stated_rhythm
from quadloom.model.url import Url, canonical, encoded, host_of, resolve, site_of
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.text import Highlights
from quadloom.stores.text_queries import snippets, text_query
from quadloom.web.server.negotiation import parse_accept
from quadloom.web.view import filters

SIZE = 60_000  # nearly `limits.query_length`
SECONDS = 2.0  # of CPU; what is quadratic takes minutes
BASE = "http://site.example/a/b?c=d"
PIECES = (
    "a", "9", " ", "\t", "\n", "/", "../", "//", "%", "%2", "%ff", "<", ">", "<a ", "<a href=", "&", "&amp;", ";", ",",
    "=", '"', "'", "\\", '"\\', "(", "[", "{", "a=b;", 'rel="', "<>;", "*", "*a", "$", "-", "--", ".", "a.", ":", "a:",
    "1,", "1 ", "1-", "1 000 ", "0.", "e", "+", "é", "中", "ß", "\u0301", "\u202e", "a b ", "# ", "\\u",
    "User-agent: *\n", "Allow: /*\n",
)  # fmt: skip
READERS: dict[str, Callable[[str], object]] = {
    "resolve": lambda text: resolve(text, BASE),
    "resolve absolute": lambda text: resolve(f"http://{text}/{text}?{text}#{text}"),
    "url": lambda text: Url.parse(f"http://site.example/{text}"),
    "canonical": lambda text: canonical(f"http://site.example/{text}?{text}"),
    "encoded": lambda text: encoded(f"http://site.example/{text}"),
    "host": lambda text: site_of(host_of(f"http://{text}")),
    "trap": lambda text: trap(f"http://site.example/{text}?{text}"),
    "robots": lambda text: robots.parse(f"User-agent: *\nDisallow: /{text}\n{text}".encode(), "quadloom"),
    "robots pattern": lambda text: robots.matches(f"/{text}*{text[:500]}*x$", f"/{text}"),
    "link header": lambda text: list(link_headers.parse(text, BASE)),
    "retry-after": lambda text: retry_after(text, 0.0),
    "charset": lambda text: (header_charset(f"text/html; charset={text}"), charset_of(text.encode())),
    "changefreq": stated_rhythm,
    "date": moment,
    "accept": parse_accept,
    "words": text_query.parse,
    "snippet": lambda text: snippets.snippet(text, Highlights(words=frozenset({"a"}))),
    "query": lambda text: check(f"SELECT * {{ ?s ?p {text}", LimitSettings()),
    "path": parse_path,
    "condition": parse_condition,
    "comparable": comparable,
    "name": words,
    "cell": without_formulas,
    "place": filters.place,
    "sentence": filters.sentence,
    "date words": filters.date_words,
    "outline": lambda text: next_url(read_outline(f"<p>{text}</p><a href='{text[:300]}'>{text}</a>", BASE)),
    "form": lambda text: next_form(f"<form action='{text[:300]}'><input name='{text}'>".encode(), BASE),
    "total": lambda text: total_of([text, f"1-10 of {text}", f"{text} results"], BASE, 10),
}


@pytest.mark.parametrize("name", READERS)
def test_a_long_text_takes_a_moment(name: str) -> None:
    slow, wrong = [], []
    for piece in PIECES:
        for text in (piece * (SIZE // len(piece)), "a" + piece * (SIZE // len(piece)) + "\x00"):
            began = time.process_time()
            try:
                READERS[name](text)
            except QuadloomError:
                pass
            except Exception as error:
                wrong.append((piece, repr(error)[:100]))
            if (spent := time.process_time() - began) > SECONDS:
                slow.append((piece, round(spent, 1)))
    assert not slow and not wrong, (slow, wrong[:5])
