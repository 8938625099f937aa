"""Quadloom's transform compared with extruct, interleaved on the same pages: CPU-ms per page and the ratio.

    pip install --target /tmp/peers extruct
    python -m quadloom_lab.benchmarks.peers --peers /tmp/peers [--pages 20] [--folder DIR]

Without `--folder` the pages are those of the fake web; with it, HTML files of 15 to 90 KB found below DIR, such as the
documentation of an operating system. extruct reads all its syntaxes (JSON-LD, microdata, OpenGraph, RDFa, microformats,
Dublin Core) and returns Python objects; Quadloom's figure covers more: detection, links, text and N-Quads of all
syntaxes.

Each page goes to one and then to the other, so that other programs disturb both alike, and to Quadloom three times in a
row: a worker has its code in the processor's caches, and 40 ms of another program evict it. The best of several
rounds of each page counts; the figures are means over the pages. extruct stays out of the project's environment: its
folder is searched last, so both use the same lxml.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from quadloom.documents.transform import transform
from quadloom_lab.fakeweb import FakeRequest, FakeWeb, WebSpec

SMALLEST, LARGEST = 15_000, 90_000  # bytes of a page


class Sample(NamedTuple):
    url: str
    body: bytes


Work = Callable[[Sample], object]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare with extruct on the same pages.")
    parser.add_argument("--peers", required=True, help="folder where extruct was installed with pip --target")
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="take HTML files from here instead of the fake web")
    chosen = parser.parse_args()
    samples = from_folder(chosen.folder, chosen.pages) if chosen.folder else from_fake_web(chosen.pages)
    if not samples:
        sys.exit(f"no HTML files of {SMALLEST} to {LARGEST} bytes in {chosen.folder}")
    ours, theirs = compared(samples, own, peer(chosen.peers), chosen.rounds)
    mean = sum(len(sample.body) for sample in samples) / len(samples) / 1000
    print(f"{len(samples)} pages, mean {mean:.0f} KB; CPU-ms per page, mean of each page's best")
    print(f"  quadloom, all syntaxes to N-Quads, links, text  {ours:8.2f}")
    print(f"  extruct, all syntaxes                           {theirs:8.2f}")
    print(f"  ratio                                           {theirs / ours:8.1f}")


def own(sample: Sample) -> object:
    return transform(sample.body, url=sample.url, content_type="text/html; charset=utf-8").nquads


def peer(folder: str) -> Work:
    sys.path.append(folder)
    extruct = import_module("extruct")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")

    def work(sample: Sample) -> object:
        return extruct.extract(sample.body, base_url=sample.url, syntaxes=extruct.SYNTAXES, errors="ignore")

    return work


def compared(samples: list[Sample], first: Work, second: Work, rounds: int) -> tuple[float, float]:
    """CPU-ms per page of both."""
    for work in (first, second):
        work(samples[0])  # imports and tables that are made on first use
    best = [[float("inf"), float("inf")] for _ in samples]
    for _ in range(rounds):
        for times, sample in zip(best, samples, strict=True):
            times[1] = min(times[1], cost(second, sample))
            times[0] = min(times[0], *(cost(first, sample) for _ in range(3)))
    return (
        sum(times[0] for times in best) * 1000 / len(best),
        sum(times[1] for times in best) * 1000 / len(best),
    )


def cost(work: Work, sample: Sample) -> float:
    started = time.process_time()
    work(sample)
    return time.process_time() - started


def from_fake_web(count: int) -> list[Sample]:
    """HTML pages of the web that `quadloom bench pipeline` crawls."""
    web = FakeWeb(WebSpec(seed=1, pages=2000, hosts=40, crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False))
    layout = web.layout
    places = [(host, item) for host in layout.hosts if not host.registry for item in range(host.size)]
    random.Random(1).shuffle(places)
    samples = []
    for host, item in places:
        authority, path = layout.authorities[host.index], layout.item_path(host.index, item)
        answer = web.answer(FakeRequest(authority, path, accept="text/html"))
        if (
            answer.status == 200
            and answer.header("Content-Type") == "text/html; charset=utf-8"
            and SMALLEST <= len(answer.body) <= LARGEST
        ):
            samples.append(Sample(f"http://{authority}{path}", answer.body))
        if len(samples) == count:
            break
    return samples


def from_folder(folder: Path, count: int) -> list[Sample]:
    files = sorted(file for file in folder.rglob("*.html") if SMALLEST <= file.stat().st_size <= LARGEST)
    random.Random(1).shuffle(files)
    return [Sample(f"http://docs.example/{file.relative_to(folder)}", file.read_bytes()) for file in files[:count]]


if __name__ == "__main__":
    main()
