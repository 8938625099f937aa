"""The crawl of all workers as one report, field by field.

Every field of `CrawlReport` is merged by its type: numbers and tables of numbers are added, lists are joined without
repetition. `_BY_NAME` has the fields for which that would be wrong. So a new field is in the whole, too; if its type is
new, `merged` raises `TypeError` and a test fails.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any, Literal, TypeVar

import msgspec

from quadloom.crawling.run.report import CrawlReport, VisitProblem
from quadloom.model.service import InstanceLoad

S = TypeVar("S", bound=str)
N = TypeVar("N", int, float)
_MOST = 50  # hosts, and reasons why visits brought no page


def merged(reports: Sequence[CrawlReport]) -> CrawlReport:
    """Of one report or more."""
    names = CrawlReport.__struct_fields__
    return CrawlReport(
        **{name: _BY_NAME.get(name, _joined)([getattr(report, name) for report in reports]) for name in names}
    )


def added(figures: Iterable[dict[str, N]]) -> dict[str, N]:
    total: dict[str, N] = {}
    for some in figures:
        for name, value in some.items():
            total[name] = round(total.get(name, 0) + value, 3)
    return total


def common_state(states: Iterable[S]) -> S | Literal["running", "dead"]:
    """`running` if one of them is, otherwise the commonest."""
    counts = Counter(states)
    return "running" if "running" in counts else counts.most_common(1)[0][0] if counts else "dead"


def _joined(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    first = known[0] if known else None
    if first is None or isinstance(first, bool | str):
        if first is not None:
            raise TypeError(f"no rule merges {first!r}")
        return None
    if isinstance(first, int | float):
        return round(sum(known), 3)
    if isinstance(first, dict):
        return added(known)
    if isinstance(first, list):
        found = list(chain(*known))
        return [value for place, value in enumerate(found) if value not in found[:place]]
    if isinstance(first, msgspec.Struct):
        return type(first)(*(_joined([getattr(one, name) for one in known]) for name in first.__struct_fields__))
    raise TypeError(f"no rule merges {first!r}")


def _whole(values: Sequence[dict[str, int]]) -> dict[str, int]:
    """Each worker counts all URLs of the warehouse: the newest has most."""
    return max(values, key=lambda counts: counts.get("total", 0))


def _queues(values: Sequence[dict[str, int]]) -> dict[str, int]:
    """The frontier is counted as a whole by each worker; other queues are its own."""
    return added(values) | {"fetch": max(queues.get("fetch", 0) for queues in values)}


def _mean(values: Sequence[dict[str, float]]) -> dict[str, float]:
    """Shares of time: of a mean worker."""
    shares = {name: round(total / len(values), 3) for name, total in added(values).items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _earliest(values: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: min(one[name] for one in values if name in one) for name in chain(*values)}


def _in_turn(values: Sequence[list[str]]) -> list[str]:
    """The newest of each worker first."""
    return list(dict.fromkeys(host for host in chain(*zip_longest(*values)) if host is not None))[:_MOST]


def _problems(values: Sequence[list[VisitProblem]]) -> list[VisitProblem]:
    same: defaultdict[tuple[str, str], list[VisitProblem]] = defaultdict(list)
    for problem in chain(*values):
        same[problem.outcome, problem.reason].append(problem)
    found = [msgspec.structs.replace(some[0], visits=sum(one.visits for one in some)) for some in same.values()]
    return sorted(found, key=lambda problem: -problem.visits)[:_MOST]


def _services(values: Sequence[list[InstanceLoad]]) -> list[InstanceLoad]:
    """An instance that several workers ask has all of their requests."""
    same: defaultdict[str, list[InstanceLoad]] = defaultdict(list)
    for load in chain(*values):
        same[load.url].append(load)
    return [_instance(url, loads) for url, loads in same.items()]


def _instance(url: str, loads: Sequence[InstanceLoad]) -> InstanceLoad:
    requests = sum(load.requests for load in loads)
    return InstanceLoad(
        url,
        requests,
        sum(load.in_progress for load in loads),
        sum(load.parallel for load in loads),
        sum(load.mean_seconds * load.requests for load in loads) / requests if requests else 0.0,
        sum(load.failures for load in loads),
        sum(load.waiting for load in loads),
        min(load.resting_seconds for load in loads),
    )


_BY_NAME: dict[str, Callable[[Sequence[Any]], Any]] = {
    "seconds": max,
    "frontier": _whole,
    "queues": _queues,
    "waits": _mean,
    "bandwidth": max,  # the setting is for all workers together
    "expected": lambda values: next((value for value in values if value is not None), None),  # of all pages
    "state": common_state,
    "waits_for": _earliest,
    "services": _services,
    "hosts": _in_turn,
    "problems": _problems,
}
