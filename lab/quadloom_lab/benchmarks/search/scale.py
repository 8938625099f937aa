"""Time of a query on a large index of generated words: one and two words, unfinished, misspelt and long questions.

Words follow Zipf's law, as real ones do: few are common and most are rare, so the dictionary grows with the index.
"""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from quadloom.asking.search import search, search_request
from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.tantivy.index import TantivyText
from quadloom.stores.tantivy.sharded import ShardedText

_SYLLABLES = [f"{a}{b}" for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "ou")]
_VOCABULARY = 200_000
_ASKED = 20_000  # people ask for the more common words
_WORDS = 60  # of a document
_BATCH = 10_000
KINDS = ("one word", "two words", "unfinished", "misspelt", "long")


class QueryTimes(msgspec.Struct, frozen=True):
    """Milliseconds of CPU, and of the clock on whatever else the machine is doing."""

    kind: str
    cpu_p50: float
    cpu_p95: float
    clock_p95: float


def query_times(
    documents: int,
    *,
    questions: int = 200,
    seed: int = 7,
    shards: bool = False,
    progress: Callable[[str], None] = lambda _text: None,
) -> list[QueryTimes]:
    """The last row, `all`, is over all kinds of questions. `shards`: an index for each shard instead of one."""
    chance = random.Random(seed)
    words = _words(chance)
    common = list(itertools.accumulate(1.0 / (rank + 5) for rank in range(len(words))))
    with tempfile.TemporaryDirectory(prefix="quadloom-search-") as folder:
        index: TextIndex = (ShardedText if shards else TantivyText)(Path(folder) / "text")
        started = time.process_time()
        for start in range(0, documents, _BATCH):
            index.put(_documents(chance, words, common, range(start, min(start + _BATCH, documents))))
            index.commit()
        progress(f"{documents} documents: {(time.process_time() - started) / documents * 1e6:.0f} CPU-µs each")
        rows, whole = [], list[tuple[float, float]]()
        for kind in KINDS:
            times = [_timed(index, text) for text in _questions(chance, words, common, kind, questions)]
            whole += times
            rows.append(_row(kind, times))
        index.close()
    return [*rows, _row("all", whole)]


def _words(chance: random.Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        words["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5)))] = None
    return list(words)


def _documents(chance: random.Random, words: list[str], common: list[float], numbers: range) -> list[TextDocument]:
    stock = chance.choices(words, cum_weights=common, k=_WORDS * len(numbers))
    return [
        TextDocument(
            id=f"http://h{number % 500}.example/{number}",
            title=" ".join(stock[at * _WORDS : at * _WORDS + 4]),
            body=" ".join(stock[at * _WORDS : (at + 1) * _WORDS]),
            site=f"h{number % 500}.example",
            host=f"h{number % 500}.example",
            language="en",
            kind="html",
            fetched_at=1.7e9 + number,
        )
        for at, number in enumerate(numbers)
    ]


def _questions(chance: random.Random, words: list[str], common: list[float], kind: str, number: int) -> list[str]:
    size = {"one word": 1, "long": 8}.get(kind, 2)
    asked = []
    for _ in range(number):
        *before, last = chance.choices(words[:_ASKED], cum_weights=common[:_ASKED], k=size)
        if kind == "unfinished":
            last = last[: max(2, len(last) * 3 // 5)]
        elif kind == "misspelt":
            at = chance.randrange(1, len(last) - 1)
            last = f"{last[:at]}{last[at + 1]}{last[at]}{last[at + 2 :]}"
        asked.append(" ".join((*before, last)))
    return asked


def _timed(index: TextIndex, text: str) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    search(index, search_request(text))
    return (time.process_time() - cpu) * 1000, (time.perf_counter() - clock) * 1000


def _row(kind: str, times: list[tuple[float, float]]) -> QueryTimes:
    cpu, clock = zip(*times, strict=True)
    return QueryTimes(
        kind,
        round(statistics.median(cpu), 2),
        round(statistics.quantiles(cpu, n=20)[18], 2),
        round(statistics.quantiles(clock, n=20)[18], 2),
    )
