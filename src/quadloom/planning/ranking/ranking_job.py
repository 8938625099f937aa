"""One ranking, from files to files: merge new links into the matrix, compute both fixpoints, write the ranks.

It runs in any process; a crawl runs it in a child (`ranking_process`). All that it needs is in `RankingOrder`, and all
that it leaves are files in the directory of the link matrix, which take their names by a rename. A process that is
killed leaves the ranks as they were.

    standings.npy  the ranks (`page_ranks`)
    vectors.npy    importance and usefulness by page id; the next ranking starts from them
    moved.npy      pages that were read and whose published values changed; the crawl removes it when it has read it
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.errors import StoreError
from quadloom.model.subscription import personalization
from quadloom.planning.ranking.link_exchange import LinkExchange
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.planning.ranking.page_ranks import (
    Fingerprints,
    Mask,
    PageRanks,
    Ranking,
    RankMasks,
    Scaled,
    Vector,
    add_moved,
)
from quadloom.planning.ranking.segment_compaction import compact_segments
from quadloom.planning.ranking.usefulness import RankingRules, RankVectors, promoted, rank, weights
from quadloom.process.durable import replacing
from quadloom.settings import FreshnessSettings

_VECTORS = "vectors.npy"
_LINK_BYTES = 8  # of a link in memory: source and target
# Of a fixpoint, in L1, so it is the mean error of a page relative to the mean page. Values are published again when
# they have moved by a tenth. 1e-6 takes half as many passes again, 39 instead of 25 for 105,000 pages.
_TOLERANCE = 1e-4


class Solver(Protocol):
    """Computes both fixpoints of a matrix; see `usefulness.rank`."""

    def __call__(
        self, matrix: LinkMatrix, structured: Mask, rules: RankingRules, start: RankVectors | None
    ) -> RankVectors: ...


class RankingOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to rank. Pages are packed int64 fingerprints.

    `directory`: of the link matrix. `data_weight`: χ. `structured`: pages with structured data. `wanted`: groups of
    pages that people want, which are the links of a virtual page each. `subscribed`: pages to promote. `shared`: the
    directory in which workers exchange their links, empty = there is none. `adopt_after`: a ranking that somebody has
    saved later than this, in unix seconds, is published instead of a new one. `save_to`: where to save the ranking for
    others; it is published as well if that is `directory` or empty.
    """

    directory: str
    freshness: FreshnessSettings
    data_weight: float
    structured: bytes = b""
    wanted: tuple[bytes, ...] = ()
    subscribed: bytes = b""
    shared: str = ""
    worker: str = ""
    adopt_after: float = math.inf
    save_to: str = ""


class RankingResult(msgspec.Struct, frozen=True, kw_only=True):
    """`pages` and `links`: of the matrix; without pages nothing was written. `scales`: the weight of a page of mean
    importance, ordinary or data. `adopted_at`: when the ranking was saved that was published; 0 = it was computed.
    `passes`: over the links. `failure`: why there is no result; empty = there is one."""

    pages: int = 0
    links: int = 0
    scales: tuple[float, float] = (1.0, 1.0)
    adopted_at: float = 0.0
    passes: int = 0
    cpu_seconds: float = 0.0
    failure: str = ""


def run_ranking(order: RankingOrder, solve: Solver | None = None) -> RankingResult:
    """Do what the order asks for. `solve`: None = in this process. Raises `StoreError` or `OSError`."""
    began = time.process_time()
    directory = Path(order.directory)
    shared = Path(order.shared) if order.shared else directory
    exchange = LinkExchange(shared, order.worker) if order.shared else None
    matrix = LinkMatrix(directory, exchange=exchange)
    is_published = _is_published(matrix)
    matrix.rebuild()
    saved = None if math.isinf(order.adopt_after) else Ranking.saved(shared, order.adopt_after)
    ranking, adopted_at = saved or (None, 0.0)
    passes = 0
    if ranking is None:
        if not matrix.manifest.pages:
            return RankingResult()
        ranking, passes = _computed(order, matrix, solve)
    scales = (1.0, order.data_weight)
    if order.save_to:
        ranking.save(Path(order.save_to))
    if order.save_to in ("", order.directory):
        scales = _publish(order, matrix, ranking)
    if is_published:
        compact_segments(matrix)
    return RankingResult(
        pages=matrix.manifest.pages,
        links=matrix.manifest.links,
        scales=scales,
        adopted_at=adopted_at,
        passes=passes,
        cpu_seconds=time.process_time() - began,
    )


def _is_published(matrix: LinkMatrix) -> bool:
    """Whether other workers can see all links. If the shared directory is away, they wait for the next time."""
    try:
        matrix.publish()
    except StoreError:
        return False
    return True


def _computed(order: RankingOrder, matrix: LinkMatrix, solve: Solver | None) -> tuple[Ranking, int]:
    """The ranks of all pages of the matrix, and the number of passes."""
    pages, freshness = matrix.manifest.pages, order.freshness
    structured = np.zeros(pages, dtype=bool)
    structured[_known(matrix, order.structured)] = True
    wanted = [ids for group in order.wanted if len(ids := _known(matrix, group))]
    rules = RankingRules(
        variant=freshness.usefulness,
        damping=freshness.damping,
        personalization=personalization(pages, wanted),
        dangling=freshness.dangling,
        tol=_TOLERANCE,
    )
    start = _last_vectors(matrix.directory)
    if solve is None:
        on_disk = matrix.manifest.links * _LINK_BYTES > freshness.importance_memory
        vectors = rank(matrix.blocks(on_disk=on_disk), structured, rules, start)
    else:
        vectors = solve(matrix, structured, rules, start)
    with replacing(matrix.directory / _VECTORS) as file:
        np.save(file, np.stack([vectors.importance, vectors.usefulness]))
    # The matrix cannot tell a page without links from one that was not read; such pages are rare.
    read = np.asarray((np.diff(matrix.rows().starts) > 0) | structured)
    ranking = Ranking(matrix.fingerprints(), vectors.importance, vectors.usefulness, structured, read)
    return ranking, vectors.iterations


def _last_vectors(directory: Path) -> RankVectors | None:
    """Page ids never change, so the last vectors are a good start, also of a smaller matrix. After a repair of the
    matrix they may belong to other pages: then they are as good as any start."""
    try:
        importance, usefulness = np.load(directory / _VECTORS)
    except (OSError, ValueError, EOFError):
        return None
    usable = len(importance) and np.isfinite(importance).all() and np.isfinite(usefulness).all()
    return RankVectors(importance, usefulness, 0, math.inf) if usable and importance.sum() > 0.0 else None


def _publish(order: RankingOrder, matrix: LinkMatrix, ranking: Ranking) -> tuple[float, float]:
    """Write the ranks and which of the pages that were read have moved; returns `RankingResult.scales`."""
    structured = ranking.structured
    ordinary = ranking.read & ~structured
    values = weights(ranking.importance, ranking.usefulness, structured, order.data_weight, ranking.read)
    own = np.array_equal(matrix.fingerprints(), ranking.fingerprints)
    pages = matrix.sorted_pages() if own else ranking.sorted_pages()
    if order.subscribed:
        values = promoted(values, pages.ids_of(_unpacked(order.subscribed)), order.freshness.promotion)
    count = len(ranking.fingerprints)
    vectors: dict[str, Scaled] = {
        "weight": (values, 1.0),
        "importance": (ranking.importance, count),
        "usefulness": (ranking.usefulness, 1.0 / _mean(ranking.usefulness[ordinary])),
    }
    masks = RankMasks(structured, ranking.read)
    published = PageRanks.load(matrix.directory)
    PageRanks.publish(matrix.directory, pages, vectors, masks, published, add_moved)
    means = [_mean(ranking.importance[mask] * count) for mask in (ordinary, structured)]
    return 1.0 / means[0], order.data_weight / means[1]


def packed(fingerprints: Sequence[int]) -> bytes:
    return np.fromiter(fingerprints, dtype="<i8", count=len(fingerprints)).tobytes()


def _unpacked(fingerprints: bytes) -> Fingerprints:
    return np.frombuffer(fingerprints, dtype="<i8")


def _known(matrix: LinkMatrix, fingerprints: bytes) -> npt.NDArray[np.intp]:
    ids = matrix.ids(_unpacked(fingerprints))
    return ids[ids >= 0].astype(np.intp)


def _mean(values: Vector) -> float:
    """The mean; 1 if there is nothing to average, or the mean is 0."""
    return (float(values.mean()) if len(values) else 0.0) or 1.0
