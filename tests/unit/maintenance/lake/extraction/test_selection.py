"""Records chosen by an index, and archives on servers: only the ranges that are wanted are read."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from quadloom.errors import StoreError, UsageError
from quadloom.maintenance.lake.extraction import remote
from quadloom.maintenance.lake.extraction.inputs import COMMON_CRAWL, local_copy, sources_of
from quadloom.maintenance.lake.extraction.messages import ByteRange, Options, Source
from quadloom.maintenance.lake.extraction.part import worker
from quadloom.maintenance.lake.extraction.run import extract
from quadloom.maintenance.lake.extraction.selection import RecordSelection
from quadloom.maintenance.lake.place import DirectoryLake
from quadloom.maintenance.lake.query import ask
from quadloom.model.page import Page
from quadloom.process.bulk_tasks import TaskResult
from quadloom.settings import GuardSettings, Settings
from quadloom.stores.archive.warc_record import encode, file_header

pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'quadloom[lake]'")
parquet = pytest.importorskip("pyarrow.parquet")
LOCAL = Settings(guard=GuardSettings(allow=["127.0.0.0/8"]))
HOSTS = ("www.a.example", "b.example", "a.example", "nota.example", "c.example")


class Archives:
    """Serves a folder with ranges, and notes what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.fail = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            sizes: ClassVar[dict[str, int]] = {}

            def do_GET(self) -> None:
                wanted = self.headers.get("Range", "")
                outer.asked.append(wanted)
                path = folder / self.path.lstrip("/")
                if outer.fail or not path.is_file():
                    outer.fail = max(0, outer.fail - 1)
                    self.send_error(503 if path.is_file() else 404)
                    return
                data = path.read_bytes()
                if wanted:
                    begin, _, end = wanted.removeprefix("bytes=").partition("-")
                    data = data[int(begin) : int(end) + 1]
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archives]:
    monkeypatch.setattr(remote, "_PAUSE", 0.01)
    archives = Archives(tmp_path)
    archives.thread.start()
    yield archives
    archives.server.shutdown()
    archives.thread.join()
    archives.server.server_close()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An archive of five pages, each 300 KB so that ranges are worth it, and its CDXJ."""
    data, lines = file_header("crawl.warc.gz", 0.0), ["!meta {}"]
    for number, host in enumerate(HOSTS):
        url = f"http://{host}/"
        noise = "".join(f"{value:x} " for value in range(number * 90_000, number * 90_000 + 90_000))
        page = Page(url, url, 200, (("content-type", "text/html"),), f"<title>{host}</title>{noise}".encode(), 1.0, 0.1)
        member = encode(page).member
        entry = {
            "url": url, "mime": "text/html", "status": "200", "languages": "eng,deu" if number % 2 else "fra",
            "filename": "crawl.warc.gz", "offset": str(len(data)), "length": str(len(member)),
        }  # fmt: skip
        lines.append(f"example,x)/ 20200101000000 {json.dumps(entry)}")
        data += member
    moved = {"url": "http://a.example/old", "status": "301", "filename": "crawl.warc.gz", "offset": "0", "length": "9"}
    lines.append(f"example,x)/ 20200101000000 {json.dumps(moved)}")
    (tmp_path / "crawl.warc.gz").write_bytes(data)
    (tmp_path / "crawl.cdxj").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "crawl.cdxj"


def run(folder: Path, sources: list[Source], *, resume: bool = False) -> list[tuple[object, ...]]:
    def here(job: object, tasks: list[str]) -> Iterator[TaskResult]:
        with worker(job.setup) as function:  # type: ignore[attr-defined]
            yield from (TaskResult(task, function(task, b"")) for task in tasks)

    extract(sources, str(folder), Options(), LOCAL, here, resume=resume)  # type: ignore[arg-type]
    return ask(DirectoryLake(folder), "SELECT host, archive_offset FROM pages ORDER BY archive_offset").rows


def test_records_of_an_index_beside_its_archive(index: Path, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", sources_of([str(index)]))
    assert [host for host, _ in whole] == list(HOSTS)
    (source,) = sources_of([str(index)], selection=RecordSelection(domains=("a.example",)))
    assert source.name == str(tmp_path / "crawl.warc.gz")
    assert run(tmp_path / "some", [source]) == [whole[0], whole[2]]  # at their own offsets
    (source,) = sources_of([str(index)], selection=RecordSelection(languages=("deu",)))
    assert [host for host, _ in run(tmp_path / "german", [source])] == [HOSTS[1], HOSTS[3]]
    with pytest.raises(UsageError, match="no record that fits"):
        sources_of([str(index)], selection=RecordSelection(mimes=("text/turtle",)))


def test_only_the_ranges_are_fetched(index: Path, tmp_path: Path, served: Archives) -> None:
    (source,) = sources_of([str(index)], "", RecordSelection(domains=("a.example", "b.example")), served.url)
    served.fail = 2  # each is tried again
    hosts = [host for host, _ in run(tmp_path / "tables", [source])]
    assert hosts == list(HOSTS[:3])
    begin, end = source.ranges[0].offset, source.ranges[2].end
    assert served.asked == [f"bytes={begin}-{end - 1}"] * 3


def test_a_whole_archive_is_fetched(index: Path, tmp_path: Path, served: Archives) -> None:
    assert [host for host, _ in run(tmp_path / "tables", sources_of([f"{served.url}crawl.warc.gz"]))] == list(HOSTS)
    assert served.asked == [""]
    missing = Source(f"{served.url}none.warc.gz", "archive")
    (tmp_path / "copies").mkdir()
    with pytest.raises(StoreError, match="404"), local_copy(missing, LOCAL, tmp_path / "copies"):
        pass


def test_a_source_that_cannot_be_fetched_is_tried_again(index: Path, tmp_path: Path, served: Archives) -> None:
    sources = [Source(f"{served.url}late.warc.gz", "archive"), Source(f"{served.url}crawl.warc.gz", "archive")]
    assert len(run(tmp_path / "tables", sources)) == 5
    (tmp_path / "crawl.warc.gz").rename(tmp_path / "late.warc.gz")
    served.asked.clear()
    assert len(run(tmp_path / "tables", sources, resume=True)) == 10
    assert served.asked == [""]


def test_private_addresses_are_refused_unless_they_are_allowed(index: Path, tmp_path: Path, served: Archives) -> None:
    source = Source(f"{served.url}crawl.warc.gz", "archive")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1 is"), local_copy(source, Settings(), tmp_path):
        pass
    assert not served.asked


def test_the_columnar_index_of_common_crawl(index: Path, tmp_path: Path) -> None:
    entries = [json.loads(line[line.index("{") :]) for line in index.read_text().splitlines()[1:]]
    rows = [
        {
            "url_host_name": entry["url"].split("/")[2], "content_mime_detected": entry.get("mime"),
            "content_languages": entry.get("languages"), "fetch_status": int(entry["status"]),
            "warc_filename": entry["filename"], "warc_record_offset": int(entry["offset"]),
            "warc_record_length": int(entry["length"]),
        }
        for entry in entries
    ]  # fmt: skip
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "part.parquet")
    wanted = RecordSelection(domains=("a.example",), mimes=("text/html",))
    assert sources_of([str(tmp_path / "part.parquet")], selection=wanted) == sources_of([str(index)], selection=wanted)


def test_lists_of_paths_and_names_outside(tmp_path: Path) -> None:
    paths = tmp_path / "warc.paths.gz"
    paths.write_bytes(gzip.compress(b"crawl-data/a.warc.gz\ncrawl-data/b.warc.gz\n"))
    assert [source.name for source in sources_of([str(paths)])] == [
        f"{COMMON_CRAWL}crawl-data/a.warc.gz", f"{COMMON_CRAWL}crawl-data/b.warc.gz",
    ]  # fmt: skip
    entry = {"url": "http://a.example/", "status": 200, "filename": "../../secret.warc.gz", "offset": 0, "length": 9}
    (tmp_path / "x.cdxj").write_text(f"x 2020 {json.dumps(entry)}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="outside"):
        sources_of([str(tmp_path / "x.cdxj")])


def test_ranges_that_are_close_are_one_request() -> None:
    ranges = [ByteRange(900_000, 10), ByteRange(0, 10), ByteRange(1000, 10)]
    assert remote.joined(ranges) == [[ByteRange(0, 10), ByteRange(1000, 10)], [ByteRange(900_000, 10)]]
