"""RDFa Web Spider (Ridgway 2009): the sizing of a crawl of the whole web, and the memory of the URLs seen."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.commands.bench import bench_settings
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from quadloom_lab.papers.report import Result, Scale
from quadloom_lab.scheduling.first_reads import simulated_graph

PAPER = "RDFa Web Spider (Ridgway 2009)"
_WEB = 1.3e12  # pages, section 2.3.4
_PAGE = 10.5 * 1024  # bytes with headers
_LINK = 50e6  # bits a second
_YEAR = 365.25 * 86400
_NODE_BYTES = 33  # of an entry of the trie, figure 3.3
_FINGERPRINT_BYTES = 8


def results(scale: Scale) -> Iterator[Result]:
    yield sizing(scale)
    yield urls_seen(scale)


def sizing(scale: Scale) -> Result:
    """Section 2.3.4: bytes and years to read the whole web; a measured crawl beside the assumptions."""
    pages = scale.size(400, 400_000)
    spec = WebSpec(
        seed=1, pages=pages, hosts=max(4, pages // 40), crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False
    )
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-papers-") as name,
        serve_in_process(FakeWeb(spec), logging=False, prerender=True) as serving,
        Warehouse.open(Path(name), settings=bench_settings(Settings(), serving.web, 1)) as warehouse,
    ):
        running = warehouse.crawl(serving.web.seeds)
        for _ in running:
            pass
        report = running.report()
        stored = sum(file.stat().st_size for file in (Path(name) / "archive").iterdir())
    read = max(1, report.phases["fetch"])
    per_core = read / sum(report.cpu.values())
    rows = (
        ("pages of the web", _WEB, _WEB),
        ("bytes of a page with headers", _PAGE, report.bytes / read),
        ("petabytes to transfer", _WEB * _PAGE / 2**50, _WEB * report.bytes / read / 2**50),
        ("years at 50 Mbit/s", _WEB * _PAGE * 8 / _LINK / _YEAR, _WEB * report.bytes / read * 8 / _LINK / _YEAR),
        ("archive bytes of a page", "-", stored / read),
        ("pages read in the test", 400_000, read),
        ("pages a second and core, all phases", "-", per_core),
        ("core-years for the web", "-", _WEB / per_core / _YEAR),
    )
    return Result(
        key="rdfa-sizing",
        paper=PAPER,
        item="Section 2.3",
        title="what a crawl of the whole web takes",
        difference=(
            "The report multiplies assumed sizes; here bytes and CPU of a page are measured on small generated pages, "
            "uncompressed on the wire, and extrapolated the same way. Its test read 400,000 URLs on ten machines."
        ),
        columns=("quantity", "paper", "measured here"),
        rows=rows,
    )


def urls_seen(scale: Scale) -> Result:
    """Figure 3.3: a trie of all URLs seen, 33 bytes an entry, against fingerprints."""
    rows = []
    for pages in (scale.size(2000, 50_000), scale.size(8000, 200_000)):
        urls = [f"http://www.{url.removeprefix('http://')}/articles/page.html" for url in simulated_graph(pages).urls]
        entries = trie_entries(urls)
        text = sum(map(len, urls))
        rows.append(
            (
                len(urls),
                text / len(urls),
                entries / len(urls),
                entries * _NODE_BYTES / len(urls),
                sys.getsizeof(set(range(len(urls)))) / len(urls),
                _FINGERPRINT_BYTES,
            )
        )
    return Result(
        key="rdfa-figure-3-3",
        paper=PAPER,
        item="Figure 3.3",
        title="bytes to remember a URL that was seen",
        difference=(
            "The report left open whether its trie saves space. An entry is one character; here the URLs are "
            "generated and share long beginnings. Quadloom remembers 64-bit fingerprints; a set of Python in a worker "
            "takes more."
        ),
        columns=(
            "URLs",
            "characters each",
            "trie entries each",
            "trie, bytes",
            "set in a worker, bytes",
            "fingerprint, bytes",
        ),
        rows=tuple(rows),
    )


def trie_entries(words: Sequence[str]) -> int:
    """Nodes of a trie of single characters: of each word, what follows the longest beginning that it shares."""
    count, before = 0, ""
    for word in sorted(set(words)):
        shared = next(
            (at for at, (a, b) in enumerate(zip(before, word, strict=False)) if a != b), min(len(before), len(word))
        )
        count += len(word) - shared
        before = word
    return count
