"""Importance of all pages from all links, computed now, for the crawls of a warehouse to take up."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from quadloom.crawling.run.session import page_ranker
from quadloom.errors import SettingsError
from quadloom.maintenance.parallel.importance import ParallelRanking
from quadloom.planning.ranking.page_ranks import Ranking
from quadloom.planning.ranking.ranking_process import RankingInThread
from quadloom.process.bulk_tasks import Runner
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog

_ALL_LINKS = "all"  # in `cluster.links`: the matrix of a ranking of all pages; no worker has this name


class RankReport(msgspec.Struct, frozen=True):
    """`pages`: all that links name. `top`: the most important pages that were read; 1 = the mean of all."""

    pages: int
    top: list[tuple[str, float]]


def rank(
    stores: Stores,
    settings: Settings,
    runner: Runner | None,
    *,
    resume: bool,
    limit: int,
    progress: Callable[[int, float], None],
) -> RankReport:
    """Rank all pages. `runner`: the passes over the links are done by its processes."""
    shared = settings.cluster.links
    if stores.shards is not None and not shared:
        raise SettingsError(
            "every worker has the links that it saw itself",
            hint="let them share a directory: set cluster.links on all machines",
        )
    directory = Path(shared) / _ALL_LINKS if shared else stores.places.links
    tasks = None
    if runner is not None:
        solve = ParallelRanking(stores.path, settings, runner, resume=resume, progress=progress)
        tasks = RankingInThread(solve)
    ranker = page_ranker(stores, settings, directory=directory if shared else None, runner=tasks)
    place = Path(shared) if shared else directory
    try:
        result = ranker.run(save_to=str(place))
    finally:
        ranker.close()
    saved = Ranking.saved(place, -math.inf) if result.pages else None
    if saved is None:
        return RankReport(0, [])
    return RankReport(result.pages, _most_important(stores.catalog, saved[0], limit))


def _most_important(catalog: Catalog, ranking: Ranking, limit: int) -> list[tuple[str, float]]:
    """Pages that were read, with their importance; 1 = the mean of all."""
    scale = len(ranking.fingerprints)
    read = np.flatnonzero(ranking.read)
    top = read[np.argsort(-ranking.importance[read], kind="stable")[: 2 * limit]]  # a few rows may be gone
    rows = catalog.pages(ranking.fingerprints[top].tolist())
    found = [
        (rows[key].href, round(float(ranking.importance[place]) * scale, 2))
        for place in top
        if (key := int(ranking.fingerprints[place])) in rows
    ]
    return found[:limit]
