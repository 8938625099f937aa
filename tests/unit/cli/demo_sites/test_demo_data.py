"""The demo's data file: what the lab's generator says, small enough for a wheel, and all that a crawl asks for."""

from __future__ import annotations

import gzip
from urllib.parse import urlsplit

import pytest

from quadloom.cli.demo_sites.server import SITES, load_sites
from quadloom_lab.fakeweb import FakeRequest, demo_web
from quadloom_lab.fakeweb.demo_data import collect, encode


def test_the_data_file_is_what_the_generator_renders() -> None:
    """Compared before compression, because the compressed bytes depend on the version of zlib."""
    rendered = encode(collect())
    assert gzip.decompress(SITES.read_bytes()) == rendered, "run `python -m quadloom_lab.fakeweb.demo_data`"
    assert encode(collect()) == rendered


def test_it_is_small() -> None:
    assert SITES.stat().st_size < 150_000


def test_it_has_every_page_that_a_crawl_asks_for() -> None:
    stored = load_sites().sites
    for url in demo_web().reachable():
        parts = urlsplit(url)
        assert parts.path in stored[parts.netloc], url
    for site in stored.values():
        assert {"/", "/robots.txt", "/sitemap.xml"} <= site.keys()


@pytest.mark.parametrize("port", [80, 8123])
def test_only_the_port_differs_from_the_generators_bytes(port: int) -> None:
    stored, web = load_sites().sites, demo_web(port)
    for name, site in stored.items():
        for target, response in site.items():
            text = response.text
            for host in stored:
                text = text.replace(f"http://{host}", f"http://{host}:{port}")
            answer = web.answer(FakeRequest(f"{name}:{port}", target))
            assert (response.status, response.data or text.encode()) == (answer.status, answer.body), target
