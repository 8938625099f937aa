"""What a page says about others: links that count for their importance, dates and rhythms of change."""

from __future__ import annotations

import pytest

from quadloom.documents.extract import chosen, discoveries, edges, targets
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed
from quadloom.model.link import Discovery
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.model.visit import Visit


def test_links_that_our_own_mapping_invents_do_not_count_for_importance() -> None:
    """A generic XML document names rdf:type and its namespaces, but recommends none of these pages."""
    body = b'<n xmlns="http://ns.example/v#"><see href="http://b.example/page">x</see><q><r>1</r></q></n>'
    transformed = transform(body, url="http://a.example/x.xml", headers=(("content-type", "application/xml"),))
    leading_to = targets(transformed.links)
    kinds = {link.target: link.kind for link in transformed.links}
    assert kinds["http://ns.example/v"] == "vocabulary"
    counted = edges(transformed.links, leading_to)
    assert counted == fingerprint("http://b.example/page").to_bytes(8, "little", signed=True)
    assert len(edges(transformed.links, leading_to, vocabulary=True)) > len(counted)


def found(url: str, transformed: Transformed) -> dict[str, Discovery]:
    visit = Visit(url, canonical(url), host_of(url), fingerprint(canonical(url)), depth=3)
    leading_to = targets(transformed.links)
    offered = discoveries(transformed, leading_to, visit, chosen(["all"]), lambda _fingerprint, _depth: False)
    return {item.href: item for item in offered}


def test_a_sitemap_states_rhythms_also_of_known_pages() -> None:
    entries = "".join(
        f"<url><loc>http://a.example/{word}</loc><changefreq>{word}</changefreq></url>"
        for word in ("daily", "Weekly", "sometimes", "")
    )
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()
    url = "http://a.example/sitemap.xml"
    offered = found(url, transform(body, url=url, headers=(("content-type", "application/xml"),)))
    assert {href: item.rhythm for href, item in offered.items()} == {
        "http://a.example/daily": 86_400.0,
        "http://a.example/Weekly": 7 * 86_400.0,
    }


def test_a_page_states_its_own_rhythm() -> None:
    url = "http://a.example/page"
    body = b'<meta name="Revisit-After" content="2 weeks"><a href="/other">x</a>'
    offered = found(url, transform(body, url=url, headers=(("content-type", "text/html"),)))
    assert {href: (item.rhythm, item.depth) for href, item in offered.items()} == {url: (14 * 86_400.0, 3)}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("<ttl>30</ttl>", 1800.0),
        ("<ttl>0</ttl>", None),
        ("<ttl>soon</ttl>", None),
        ("<sy:updatePeriod>daily</sy:updatePeriod>", 86_400.0),
        (" <sy:updatePeriod> Daily </sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency><ttl>5</ttl>", 21_600.0),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency>", 86_400.0),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>²</sy:updateFrequency>", 86_400.0),
        ("<sy:updatePeriod>always</sy:updatePeriod>", None),
        ("<item><ttl>30</ttl></item>", None),
    ],
)
def test_a_feed_states_its_own_rhythm(stated: str, expected: float | None) -> None:
    url = "http://a.example/feed"
    name = 'xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"'
    rss = f'<rss version="2.0" {name}><channel><title>t</title>{stated}</channel></rss>'
    atom = f'<feed xmlns="http://www.w3.org/2005/Atom" {name}><title>t</title>{stated}</feed>'
    for body in (rss, atom) if "ttl" not in stated else (rss,):
        offered = found(url, transform(body.encode(), url=url, headers=(("content-type", "application/xml"),)))
        assert {href: item.rhythm for href, item in offered.items()} == ({url: expected} if expected else {})
