"""CPU time of detect and transform on generated pages: `python -m quadloom_lab.benchmarks.transform [pages]`.

Prints the best of several rounds, which is the figure least disturbed by other programs on the machine, and the median.
Parsing is the minimum for any extractor.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.detect import detect
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.transform import transform
from quadloom.settings import Settings, TransformSettings
from quadloom_lab.benchmarks.sample_pages import page

URL = "https://news.example/articles/1"
TYPE = "text/html; charset=utf-8"
OWN = Settings(transform=TransformSettings(syntaxes=["html", "meta", "opengraph"]))


def measure(work: Callable[[bytes], object], bodies: list[bytes], rounds: int = 15) -> tuple[float, float]:
    """Best and median CPU-ms per page."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        for body in bodies:
            work(body)
        times.append((time.process_time() - started) * 1000 / len(bodies))
    return min(times), statistics.median(times)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for title, size, links in (("typical 38 KB", 38, 108), ("annotated 52 KB", 52, 150), ("big 276 KB", 276, 800)):
        bodies = [page(seed, kilobytes=size, links=links) for seed in range(count if size < 100 else 4)]
        print(f"{title}: {len(bodies)} pages, CPU-ms per page, best (median)")
        rows: dict[str, Callable[[bytes], object]] = {
            "parse": lambda body: LexborHTMLParser(body, options=1),
            "detect": lambda body: detect(body, url=URL, content_type=TYPE),
            "html+meta+opengraph": lambda body: transform(body, url=URL, content_type=TYPE, settings=OWN),
            "all syntaxes": lambda body: transform(body, url=URL, content_type=TYPE),
        }
        for name, work in rows.items():
            best, median = measure(work, bodies)
            print(f"  {name:24s}{best:8.3f} ({median:.3f})")
    print("syntaxes:", ", ".join(SYNTAXES.syntaxes))


if __name__ == "__main__":
    main()
