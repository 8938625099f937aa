"""Visits of a page by the Memento protocol (RFC 7089)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient
from warcio.archiveiterator import ArchiveIterator

from quadloom.model.outcome import Outcome, Settlement
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import Settings, WebSettings
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.web_fixture import store_page

URL = "http://books.example/page?a=1&b=%20x"
FIRST, SECOND, SAME = 1_700_000_000.0, 1_700_100_000.0, 1_700_200_000.0
MARKUP = "<!doctype html><title>{0}</title><body><p>Text {0}</p><script>window.hit=1</script></body>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with two versions, the second of which a third visit confirms."""
    path = tmp_path_factory.mktemp("memento") / "data"
    with Warehouse.open(path) as made:
        store_page(made, URL, MARKUP.format("one"), FIRST)
        store_page(made, URL, MARKUP.format("two"), SECOND)
        url = Url.parse(URL)
        row = made.stores.catalog.page(url.fingerprint)
        assert row is not None
        same = msgspec.structs.replace(row, fetched_at=SAME, outcome=Outcome.UNCHANGED)
        visit = Visit(url.href, url.key, url.host, url.fingerprint)
        with made.stores.catalog.transaction():
            made.stores.frontier.settle([Settlement(visit, Outcome.UNCHANGED, same)], SAME)
            made.stores.catalog.record([Settlement(visit, Outcome.UNCHANGED, same)], SAME)
    return path


@pytest.fixture(scope="module")
def site(path: Path) -> Iterator[TestClient]:
    settings = Settings(web=WebSettings(rate=0.0, concurrency=0))
    app = create_app(SiteState(path, settings))
    with TestClient(app, base_url="http://127.0.0.1:7272", follow_redirects=False) as client:
        yield client


def test_the_time_map_lists_every_visit_unchanged_ones_too(site: TestClient) -> None:
    answer = site.get(f"/timemap/link/{URL}")
    assert answer.headers["content-type"].startswith("application/link-format")
    stamps = re.findall(r'<http://127\.0\.0\.1:7272/memento/(\d{14})/([^>]+)>; rel="([^"]+)"', answer.text)
    assert [stamp for stamp, _, _ in stamps] == ["20231114221320", "20231116020000", "20231117054640"]
    assert {url for _, url, _ in stamps} == {URL}
    assert [relation for _, _, relation in stamps] == ["first memento", "memento", "last memento"]
    assert f'<{URL}>; rel="original"' in answer.text and 'rel="timegate"' in answer.text


@pytest.mark.parametrize(
    ("date", "stamp"),
    [
        ("", "20231117054640"),
        ("Tue, 14 Nov 2023 00:00:00 GMT", "20231114221320"),
        ("Wed, 15 Nov 2023 00:00:00 GMT", "20231114221320"),
        ("Thu, 16 Nov 2023 03:00:00 GMT", "20231116020000"),
        ("Sat, 01 Jan 2050 00:00:00 GMT", "20231117054640"),
    ],
)
def test_the_time_gate_leads_to_the_nearest_visit(site: TestClient, date: str, stamp: str) -> None:
    answer = site.get(f"/timegate/{URL}", headers={"accept-datetime": date} if date else {})
    assert answer.status_code == 302 and answer.headers["vary"] == "accept-datetime"
    assert answer.headers["location"] == f"http://127.0.0.1:7272/memento/{stamp}/{URL}"
    assert 'rel="timemap"' in answer.headers["link"] and stamp in answer.headers["link"]


@pytest.mark.parametrize(
    ("stamp", "text", "date"),
    [
        ("20231114221320", "Text one", "Tue, 14 Nov 2023 22:13:20 GMT"),
        ("20231116020000", "Text two", "Thu, 16 Nov 2023 02:00:00 GMT"),
        ("20231117054640", "Text two", "Fri, 17 Nov 2023 05:46:40 GMT"),
    ],
)
def test_a_memento_is_the_page_as_it_was(site: TestClient, stamp: str, text: str, date: str) -> None:
    answer = site.get(f"/memento/{stamp}/{URL}")
    assert answer.status_code == 200 and text in answer.text and answer.headers["memento-datetime"] == date
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox;") and "allow-" not in policy and "default-src 'none'" in policy


def test_a_time_between_visits_and_wrong_ones(site: TestClient) -> None:
    answer = site.get(f"/memento/20231116030000/{URL}")
    assert answer.status_code == 302 and "/memento/20231116020000/" in answer.headers["location"]
    assert site.get(f"/memento/2023/{URL}").status_code == 400
    assert site.get(f"/timegate/{URL}", headers={"accept-datetime": "yesterday"}).status_code == 400
    assert site.get("/timegate/http://never.example/").status_code == 404
    assert site.get("/timemap/link/javascript:alert(1)").status_code == 400


def test_a_wacz_file_has_every_visit_and_true_sums(path: Path, tmp_path: Path) -> None:
    with Warehouse.read(path) as read:
        assert read.maintenance.export(tmp_path / "x.wacz").pages == 1
    with zipfile.ZipFile(tmp_path / "x.wacz") as packed:
        package = msgspec.json.decode(packed.read("datapackage.json"))
        digest = msgspec.json.decode(packed.read("datapackage-digest.json"))
        assert digest["hash"] == f"sha256:{sha256(packed.read('datapackage.json')).hexdigest()}"
        for one in package["resources"]:
            data = packed.read(one["path"])
            assert one["hash"] == f"sha256:{sha256(data).hexdigest()}" and one["bytes"] == len(data)
        assert packed.getinfo("archive/data.warc.gz").compress_type == zipfile.ZIP_STORED
        index = packed.read("indexes/index.cdx").decode().splitlines()
        warc = packed.read("archive/data.warc.gz")
        (page,) = [msgspec.json.decode(line) for line in packed.read("pages/pages.jsonl").splitlines()][1:]
    assert page["url"] == URL and page["title"] == "two"
    assert index == sorted(index) and len(index) == 3 and "Pictures" in package["description"]
    (tmp_path / "data.warc.gz").write_bytes(warc)
    with (tmp_path / "data.warc.gz").open("rb") as stream:
        kinds = [(record.rec_type, record.rec_headers.get_header("WARC-Date")) for record in ArchiveIterator(stream)]
    assert [kind for kind, _ in kinds] == ["warcinfo", "response", "response", "revisit"]
    for line, kind in zip(index, ["response", "response", "revisit"], strict=True):
        key, stamp, facts = line.split(" ", 2)
        found = msgspec.json.decode(facts)
        member = warc[int(found["offset"]) : int(found["offset"]) + int(found["length"])]
        assert key == "example,books)/page?a=1&b=%20x" and len(stamp) == 14
        (tmp_path / "one.warc.gz").write_bytes(member)
        with (tmp_path / "one.warc.gz").open("rb") as stream:
            assert [record.rec_type for record in ArchiveIterator(stream)] == [kind]
        assert kind != "revisit" or len(member) <= 400
