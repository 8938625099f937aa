"""Wishes of sites and of users, one small site each: what a crawl asks for, keeps and leaves out."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import msgspec
import pytest

import quadloom
from fakeweb.scripted import Answer, ScriptedSite, html
from faults.crawling import finish
from quadloom.crawling.ingest.traps.filter import read_traps
from quadloom.settings import Settings, SiteSettings
from quadloom.settings.loading import Value, load
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.warehouse import Warehouse

DATA = '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Person", "name": "N"}</script>'


def settings(site: ScriptedSite, exceptions: tuple[SiteSettings, ...] = (), **sections: dict[str, Value]) -> Settings:
    loaded = load(environ={}, overrides=site.settings(**sections)).settings
    return msgspec.structs.replace(loaded, site=list(exceptions))


def crawled(warehouse: Warehouse, site: ScriptedSite, *urls: str) -> dict[str, tuple[str, int]]:
    """Path → outcome and status of every visit."""
    root = site.url("")
    return {
        one.visit.href.removeprefix(root): (str(one.outcome), one.page.status if one.page else 0)
        for one in warehouse.crawl(list(urls) or [site.url()])
    }


def graphs(warehouse: Warehouse, site: ScriptedSite) -> set[str]:
    root = site.url("")
    return {name.removeprefix(root) for name in warehouse.stores.quads.graphs() if name.startswith(root)}


def robots_site() -> ScriptedSite:
    names = ("mi", "mf", "ma", "xi", "xf", "xa", "private")

    def page(word: str, *, meta: str = "", header: str = "") -> Answer:
        head = f"<meta name=robots content={meta}>" if meta else ""
        answer = html(f"<p>{word} <a href=/from-{word}>on</a>{DATA}", head)
        return answer._replace(headers=(("X-Robots-Tag", header),)) if header else answer

    return ScriptedSite(
        {
            "/robots.txt": Answer(b"User-agent: *\nDisallow: /private\n", "text/plain"),
            "/": html(
                "".join(f"<a href=/{name}>{name}</a>" for name in ("mi", "mf", "ma", "xi", "xf", "xa", "private"))
            ),
            "/mi": page("mi", meta="noindex"),
            "/mf": page("mf", meta="nofollow"),
            "/ma": page("ma", meta="noarchive"),
            "/xi": page("xi", header="noindex"),
            "/xf": page("xf", header="nofollow"),
            "/xa": page("xa", header="Quadloom: noarchive"),
            "/private": page("private"),
            **{f"/from-{name}": html("reached") for name in names},
        }
    )


def test_what_pages_ask_of_robots_holds_in_index_extract_and_archive(tmp_path: Path) -> None:
    with robots_site() as site, quadloom.open(tmp_path / "w", settings=settings(site)) as warehouse:
        outcomes = crawled(warehouse, site)
        assert outcomes["/private"] == ("denied", 0)
        assert "/private" not in site.paths()
        assert {"/from-mi", "/from-ma", "/from-xi", "/from-xa"} <= set(outcomes)
        assert not {"/from-mf", "/from-xf", "/from-private"} & set(outcomes)
        assert {"/mf", "/ma", "/xf", "/xa"} <= graphs(warehouse, site)
        assert not {"/mi", "/xi"} & graphs(warehouse, site)
        found = {hit.id.removeprefix(site.url("")) for hit in warehouse.search("N", limit=100)}
        assert "/mf" in found and not {"/mi", "/xi"} & found
        archived = {record.url.removeprefix(site.url("")) for _, record in warehouse.stores.archive.scan()}
        assert "/mf" in archived and not {"/ma", "/xa"} & archived
        assert warehouse.maintenance.verify().ok


@pytest.mark.parametrize("way", ["everywhere", "own site"])
def test_robots_are_ignored_where_the_settings_say_so(tmp_path: Path, way: str) -> None:
    with robots_site() as site:
        wanted = (
            settings(site, politeness={"robots": "ignore"})
            if way == "everywhere"
            else settings(site, (SiteSettings(match="127.0.0.1", robots="ignore"),))
        )
        with quadloom.open(tmp_path / "w", settings=wanted) as warehouse:
            outcomes = crawled(warehouse, site)
            assert {"/private", "/from-mf", "/from-xf"} <= set(outcomes)
            assert {"/mi", "/xi"} <= graphs(warehouse, site)
        assert "/robots.txt" not in site.paths()


def test_only_pages_with_data_are_stored_and_the_others_are_not_read_again(tmp_path: Path) -> None:
    pages = {"/": html("<a href=/plain>p</a><a href=/data>d</a>"), "/plain": html("words"), "/data": html(DATA)}
    with ScriptedSite(pages) as site:
        wanted = settings(site, index={"only_data": True})
        with quadloom.open(tmp_path / "w", settings=wanted) as warehouse:
            assert set(crawled(warehouse, site)) == set(pages)
            assert graphs(warehouse, site) == {"/data"}
            assert [record.url for _, record in warehouse.stores.archive.scan()] == [site.url("/data")]
            assert warehouse.maintenance.verify().ok
        asked = len(site.log)
        with quadloom.open(tmp_path / "w", settings=wanted) as warehouse:
            assert crawled(warehouse, site) == {}
        assert len(site.log) == asked


def test_archive_files_go_to_all_directories_in_turn(tmp_path: Path) -> None:
    pages = {f"/{n}": html(f"<p>{n} {time.time_ns() * 10**n}") for n in range(20)}
    pages["/"] = html("".join(f"<a href=/{n}>{n}</a>" for n in range(20)))
    disks = [tmp_path / "one", tmp_path / "two"]
    with ScriptedSite(pages) as site:
        wanted = settings(site, stores={"directories": [str(disk) for disk in disks], "archive_file_bytes": 1500})
        with quadloom.open(tmp_path / "w", settings=wanted) as warehouse:
            assert len(crawled(warehouse, site)) == 21
            assert warehouse.maintenance.verify().ok
    assert all(list(folder.glob("*.warc.gz")) for folder in (*disks, tmp_path / "w/archive"))


def test_scope_depth_and_budget(tmp_path: Path) -> None:
    pages = {
        "/": html("<a href=/a/1>1</a><a href=/b/1>2</a><a href=/a/x.pdf>p</a>"), "/a/1": html("<a href=/a/2>1</a>"),
        "/a/2": html("<a href=/a/3>3</a>"), "/a/3": html("deep"), "/b/1": html("b"),
    }  # fmt: skip
    wishes: list[tuple[dict[str, Value], set[str]]] = [
        ({"include": ["/a/*", "re:/$"]}, {"/", "/a/1", "/a/2", "/a/3", "/a/x.pdf"}),
        ({"exclude": ["/b/*", "*.pdf"]}, {"/", "/a/1", "/a/2", "/a/3"}),
        ({"max_depth": 1}, {"/", "/a/1", "/b/1", "/a/x.pdf"}),
        ({"scope": "page"}, {"/"}),
    ]
    with ScriptedSite(pages) as site:
        for number, (wish, expected) in enumerate(wishes):
            with quadloom.open(tmp_path / str(number), settings=settings(site, crawl=wish)) as warehouse:
                assert set(crawled(warehouse, site)) == expected, wish
        with quadloom.open(tmp_path / "b", settings=settings(site, crawl={"max_pages_per_host": 2})) as warehouse:
            first = crawled(warehouse, site)
            assert len(first) == 2
            assert warehouse.stores.frontier.stats(time.time()).parked > 0, "left out for now, not forgotten"
        with quadloom.open(tmp_path / "b", settings=settings(site)) as warehouse:
            rest = crawled(warehouse, site)
        assert set(first) | set(rest) == {*pages, "/a/x.pdf"} and not set(first) & set(rest)


def test_sitemaps_of_all_forms_lead_to_their_pages(tmp_path: Path) -> None:
    with ScriptedSite({"/": html("home")}) as site:
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        listed = "".join(
            f"<url><loc>{site.url(f'/s{n}')}</loc><lastmod>2024-01-0{n + 1}</lastmod></url>" for n in range(3)
        )
        urlset = f'<?xml version="1.0"?><urlset xmlns="{space}">{listed}</urlset>'.encode()
        index = f'<sitemapindex xmlns="{space}"><sitemap><loc>{site.url("/s.xml.gz")}</loc></sitemap></sitemapindex>'
        rules = f"Sitemap: {site.url('/index.xml')}\nSitemap: {site.url('/list.txt')}\n"
        site.pages |= {
            "/robots.txt": Answer(rules.encode(), "text/plain"),
            "/index.xml": Answer(index.encode(), "application/xml"),
            "/s.xml.gz": Answer(gzip.compress(urlset), "application/gzip"),
            "/list.txt": Answer(f"{site.url('/t1')}\n{site.url('/t2')}\n".encode(), "text/plain"),
            **{path: html(f"page {path}") for path in ("/s1", "/s2", "/t1", "/t2")},
        }
        with quadloom.open(tmp_path / "w", settings=settings(site)) as warehouse:
            assert {"/s1", "/s2", "/t1", "/t2"} <= set(crawled(warehouse, site))
        with quadloom.open(tmp_path / "x", settings=settings(site, crawl={"sitemaps": False})) as warehouse:
            assert set(crawled(warehouse, site)) == {"/"}


def test_linked_data_303_hash_names_and_link_headers(tmp_path: Path) -> None:
    turtle = "text/turtle"
    pages = {
        "/": html('<a href="/id/a#me">x</a><a href=/described>h</a>'),
        "/id/a": Answer(status=303, headers=(("Location", "/doc/a.ttl"),)),
        "/doc/a.ttl": Answer(b"<#me> <http://www.w3.org/2000/01/rdf-schema#seeAlso> <b.ttl> .", turtle),
        "/doc/b.ttl": Answer(b'<#b> <http://xmlns.com/foaf/0.1/name> "B" .', turtle),
        "/described": html("x")._replace(headers=(("Link", '</meta.ttl>; rel="describedby"; type="text/turtle"'),)),
        "/meta.ttl": Answer(b'<> <http://purl.org/dc/terms/title> "m" .', turtle),
    }
    with ScriptedSite(pages) as site, quadloom.open(tmp_path / "w", settings=settings(site)) as warehouse:
        outcomes = crawled(warehouse, site)
        assert set(outcomes) == set(pages)
        assert outcomes["/id/a"][1] == 303
        assert {"/doc/a.ttl", "/doc/b.ttl", "/meta.ttl"} <= graphs(warehouse, site)
        assert "/id/a" not in graphs(warehouse, site)
        accept = next(asked.headers["Accept"] for asked in site.log if asked.path == "/")
        assert accept.startswith("text/turtle"), "RDF first"
        assert "#me" not in " ".join(site.paths())


def test_a_second_visit_is_conditional_and_304_is_a_visit_without_change(tmp_path: Path) -> None:
    pages = {"/": html("<a href=/e>e</a>"), "/e": html("body")._replace(etag='"v1"')}
    with ScriptedSite(pages) as site, quadloom.open(tmp_path / "w", settings=settings(site)) as warehouse:
        assert crawled(warehouse, site)["/e"] == ("new", 200)
        warehouse.requests.refresh([site.url("/e")])
        assert crawled(warehouse, site) == {"/e": ("unchanged", 200)}
        assert site.log[-1].status == 304 and site.log[-1].headers["If-None-Match"] == '"v1"'
        site.pages["/e"] = html("other body")._replace(etag='"v2"')
        warehouse.requests.refresh([site.url("/e")])
        assert crawled(warehouse, site) == {"/e": ("changed", 200)}
        assert warehouse.maintenance.verify().ok


def test_after_a_crash_a_page_that_was_not_to_be_kept_is_asked_first_and_without_conditions(tmp_path: Path) -> None:
    """Its statements were lost before they were indexed, and the archive has no copy: a 304 would be of no use."""
    private = html("<meta name=robots content=noarchive>secret")._replace(etag='"v1"')
    pages = {"/": html("<a href=/e>e</a>"), "/e": private, **{f"/{n}": html(f"page {n}") for n in range(5)}}
    with ScriptedSite(pages) as site:
        with quadloom.open(tmp_path / "w", settings=settings(site)) as warehouse:
            assert crawled(warehouse, site)["/e"] == ("new", 200)
            row = next(row for row in warehouse.stores.catalog.scan() if row.href == site.url("/e"))
            warehouse.stores.catalog.mark_indexed([IndexedPage(row.fingerprint, b"", b"")])  # as a crash leaves it
            warehouse.stores.quads.remove(row.href)
        before = len(site.log)
        with quadloom.open(tmp_path / "w", settings=settings(site)) as warehouse:
            crawled(warehouse, site, *(site.url(f"/{n}") for n in range(5)))
            asked = [one for one in site.log[before:] if one.path != "/robots.txt"]
            assert (asked[0].path, asked[0].status) == ("/e", 200)
            assert [one.path for one in asked].count("/e") == 1
            assert warehouse.maintenance.verify().ok


def test_large_unwanted_and_cut_bodies_are_told(tmp_path: Path) -> None:
    pages = {
        "/": html("<a href=/film>f</a><a href=/huge>h</a><a href=/long>l</a><a href=/image>i</a>"),
        "/image": Answer(b"\x89PNG", "image/png"),
        "/film": Answer(b"x" * 1000, "video/mp4"),
        "/huge": Answer(b"x" * 300_000, "text/plain"), "/long": Answer(b"<p>" + b"word " * 40_000),
    }  # fmt: skip
    with ScriptedSite(pages) as site:
        limits: dict[str, Value] = {"large_bytes": 250_000, "body_bytes": 100_000}
        wanted = settings(site, limits=limits, crawl={"skip_types": ["image/*"]})
        with quadloom.open(tmp_path / "w", settings=wanted) as warehouse:
            rows = {one.visit.href.removeprefix(site.url("")): one.page for one in warehouse.crawl([site.url()])}
    codes = {path: {finding.code for finding in row.findings} for path, row in rows.items() if row}
    assert codes["/film"] == codes["/image"] == {"fetch-unwanted"}
    assert codes["/huge"] == {"fetch-too-large"}
    assert "fetch-cut" in codes["/long"]


def test_traps_are_refused_counted_and_shown(tmp_path: Path) -> None:
    stacked = "".join(f'<a href="/{"x/" * n}">t</a>' for n in range(1, 9))
    with ScriptedSite({"/": html(f'{stacked}<a href="/cal?year=2999&m=1">c</a>')}) as site:
        wanted = settings(site)
        for visit in ("first", "second"):  # the counts of an earlier crawl stay
            with quadloom.open(tmp_path / "w", settings=wanted) as warehouse:
                crawled(warehouse, site)
                traps = {trap.reason: trap.count for trap in read_traps(warehouse.stores.catalog)}
                warehouse.requests.refresh([site.url()])
            assert traps["path segment 'x' occurs more than 3 times"] >= 5, visit
            assert len(traps) == 2
        config = tmp_path / "quadloom.toml"
        config.write_text("")
        shown = finish(tmp_path / "w", config, "sites", "--json")
        assert all(reason in json.dumps(shown["traps"]) for reason in traps)
        assert int(str(finish(tmp_path / "w", config, "status", "--json")["trapped"])) == sum(traps.values())
