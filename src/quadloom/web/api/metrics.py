"""`/metrics` for Prometheus and the like, and `/health` for load balancers and supervisors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from starlette.responses import Response

from quadloom.asking.report.numbers import counts_of, store_counts
from quadloom.crawling.cluster.view import ClusterView, WorkerView
from quadloom.errors import QuadloomError, StoreUnavailable
from quadloom.model.service import InstanceLoad
from quadloom.planning.policy.demand import ExpectedFreshness
from quadloom.planning.refresh.state import schedule_of
from quadloom.settings import without_password
from quadloom.stores.statistics import statements_of
from quadloom.warehouse import Warehouse
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import WebRequest

MEDIA_TYPE = "application/openmetrics-text"
_CONTENT = f"{MEDIA_TYPE}; version=1.0.0; charset=utf-8"


class Family(NamedTuple):
    """`label`: empty = one value. `kind`: gauge or counter, whose name on the wire ends with `_total`."""

    text: str
    label: str = ""
    kind: str = "gauge"


def _counter(text: str, label: str = "") -> Family:
    return Family(text, label, "counter")


# Everything that `/metrics` may have, by name. `tools/build_dashboard.py` makes the Grafana dashboard and the alerts in
# `examples/cluster` of it.
FAMILIES = {
    "quadloom_frontier_urls": Family("URLs by state", "state"),
    "quadloom_hosts": Family("known hosts, and hosts blocked now", "state"),
    "quadloom_pages_by_outcome": Family("pages by outcome of their newest visit", "outcome"),
    "quadloom_pages_by_kind": Family("pages by kind of their newest visit", "kind"),
    "quadloom_pages_by_status": Family("pages by status of their newest visit", "status"),
    "quadloom_quads": Family("statements"),
    "quadloom_documents": Family("documents in the text index"),
    "quadloom_expected_freshness": Family("expected share of time that a copy is up to date, weighted by page"),
    "quadloom_expected_cost": Family("expected COST of the Xyleme paper, 0 = nothing is ever obsolete"),
    "quadloom_expected_reads_per_second": Family("visits a second that the refresh schedule plans"),
    "quadloom_crawl_running": Family("1 while a crawl runs"),
    "quadloom_crawl_waits": Family("share of time that this held requests back", "by"),
    "quadloom_crawl_pages": _counter("pages of this crawl"),
    "quadloom_crawl_failed": _counter("failed visits of this crawl"),
    "quadloom_crawl_denied": _counter("visits of this crawl that robots.txt or the guard denied"),
    "quadloom_crawl_bytes": _counter("bytes of this crawl"),
    "quadloom_crawl_findings": _counter("findings of this crawl"),
    "quadloom_crawl_quarantined": _counter("pages of this crawl that killed two workers"),
    "quadloom_crawl_replaced_workers": _counter("processes of this crawl that died or exceeded a limit"),
    "quadloom_phase_pages": _counter("pages through each phase", "phase"),
    "quadloom_phase_cpu_seconds": _counter("CPU by phase", "phase"),
    "quadloom_phase_rate": Family("pages per second through each phase", "phase"),
    "quadloom_phase_queue": Family("pages that wait before a phase", "phase"),
    "quadloom_service_requests": _counter("requests to each instance", "instance"),
    "quadloom_service_failures": _counter("failed requests", "instance"),
    "quadloom_service_in_progress": Family("requests in progress", "instance"),
    "quadloom_service_seconds": Family("moving mean of an answer", "instance"),
    "quadloom_worker_up": Family("1 while a worker of the cluster is alive", "worker"),
    "quadloom_worker_silent_seconds": Family("since its last heartbeat", "worker"),
    "quadloom_worker_waiting": Family("1 while a store that it needs is away", "worker"),
    "quadloom_worker_clock_error_seconds": Family("its machine's clock is ahead of the database's", "worker"),
    "quadloom_worker_shards": Family("shards that it owns", "worker"),
    "quadloom_worker_queued_urls": Family("URLs of its shards that wait", "worker"),
    "quadloom_worker_pages_per_second": Family("pages a second now", "worker"),
    "quadloom_worker_cores_busy": Family("cores used since its start", "worker"),
    "quadloom_worker_machine_load": Family("load of its machine", "worker"),
    "quadloom_worker_memory_used_bytes": Family("of its processes", "worker"),
    "quadloom_worker_memory_free_bytes": Family("of its machine", "worker"),
    "quadloom_worker_disk_free_bytes": Family("of its directory", "worker"),
    "quadloom_worker_pages": _counter("pages since its start", "worker"),
    "quadloom_worker_failures": _counter("failed visits since its start", "worker"),
}


class _Figures(msgspec.Struct):
    """The figures taken from a running crawl's report."""

    pages: int = 0
    failed: int = 0
    denied: int = 0
    bytes: int = 0
    findings: int = 0
    quarantined: int = 0
    replaced_workers: int = 0
    seconds: float = 0.0
    phases: dict[str, int] = {}
    cpu: dict[str, float] = {}
    rates: dict[str, float] = {}
    queues: dict[str, int] = {}
    waits: dict[str, float] = {}
    services: list[InstanceLoad] = []
    expected: ExpectedFreshness | None = None


def metrics(request: WebRequest) -> Response:
    return Response("\n".join(_lines(request)) + "\n", media_type=_CONTENT)


def live(_request: WebRequest) -> Response:
    return json_response({"state": "live"})


def ready(request: WebRequest) -> Response:
    """503 with the reason if a store cannot be read."""
    try:
        stores = request.site.reader.ask(_answers)
    except QuadloomError as error:
        body = {"ok": False, "status": 503, "error": error.message, "hint": error.hint or "run `quadloom check`"}
        return Response(msgspec.json.encode(body), 503, media_type="application/json", headers={"Retry-After": "5"})
    return json_response({"state": "ready", "stores": stores, "crawl": request.site.crawl.report() is not None})


def _answers(warehouse: Warehouse) -> dict[str, int]:
    """What each store has. Raises `StoreUnavailable` with those that do not answer."""
    has, away = store_counts(warehouse.stores, patient=False)
    if away:
        raise StoreUnavailable("; ".join(f"{name}: {reason}" for name, reason in away.items()))
    names = {"quads": "quads", "text": "text", "archive": "archive_bytes"}
    return {
        "catalog": len(warehouse.stores.catalog.counts()),
        **{names[name]: count for name, count in has.items()},
    }


def _lines(request: WebRequest) -> Iterator[str]:
    warehouse, now = request.warehouse, request.site.clock()
    stats = msgspec.structs.asdict(warehouse.stores.frontier.stats(now))
    hosts = {"hosts": stats.pop("hosts"), "blocked": stats.pop("blocked_hosts")}
    counts = warehouse.stores.catalog.counts()
    yield from _family("quadloom_frontier_urls", stats)
    yield from _family("quadloom_hosts", hosts)
    for word in ("outcome", "kind", "status"):
        yield from _family(f"quadloom_pages_by_{word}", counts_of(counts, word))
    yield from _value("quadloom_quads", statements_of(warehouse.stores.catalog, warehouse.stores.quads))
    yield from _value("quadloom_documents", len(warehouse.stores.text))
    report = request.site.crawl.report()
    live = msgspec.convert(report, _Figures).expected if report is not None else None
    expected = live or schedule_of(warehouse.stores.catalog, warehouse.settings).planner.expected()
    if expected is not None:
        yield from _value("quadloom_expected_freshness", expected.freshness)
        yield from _value("quadloom_expected_cost", expected.cost)
        yield from _value("quadloom_expected_reads_per_second", expected.reads)
    yield from _value("quadloom_crawl_running", int(report is not None))
    if report is not None:
        yield from crawl_lines(msgspec.convert(report, _Figures))
    cluster = request.site.crawl.cluster()
    if cluster is not None:
        yield from worker_lines(cluster)
    yield "# EOF"


# Figures of each worker that is alive.
_WORKER_FIGURES: dict[str, Callable[[WorkerView], float]] = {
    "waiting": lambda worker: int(bool(worker.waits_for)),
    "clock_error_seconds": lambda worker: worker.clock_error,
    "shards": lambda worker: worker.shards,
    "queued_urls": lambda worker: worker.queued,
    "pages_per_second": lambda worker: worker.rate,
    "cores_busy": lambda worker: worker.cores_busy,
    "machine_load": lambda worker: worker.load,
    "memory_used_bytes": lambda worker: worker.memory_used,
    "memory_free_bytes": lambda worker: worker.memory_free,
    "disk_free_bytes": lambda worker: worker.disk_free,
    "pages": lambda worker: worker.pages,
    "failures": lambda worker: worker.failed,
}
_SERVICE_FIGURES: dict[str, Callable[[InstanceLoad], float]] = {
    "requests": lambda load: load.requests,
    "failures": lambda load: load.failures,
    "in_progress": lambda load: load.in_progress,
    "seconds": lambda load: load.mean_seconds,
}


def worker_lines(cluster: ClusterView) -> Iterator[str]:
    """Figures of each worker, by its name. Those of the crawl are the totals of all."""
    named = {worker.name: worker for worker in cluster.workers}
    alive = {worker.name: worker for worker in cluster.alive}
    yield from _family("quadloom_worker_up", {name: int(name in alive) for name in named})
    yield from _family(
        "quadloom_worker_silent_seconds", {name: worker.silent_seconds for name, worker in named.items()}
    )
    for name, figure in _WORKER_FIGURES.items():
        yield from _family(f"quadloom_worker_{name}", {worker: figure(view) for worker, view in alive.items()})


def crawl_lines(figures: _Figures) -> Iterator[str]:
    yield from _family("quadloom_phase_pages", figures.phases)
    yield from _family("quadloom_phase_cpu_seconds", figures.cpu)
    yield from _family("quadloom_phase_rate", figures.rates)
    yield from _family("quadloom_phase_queue", figures.queues)
    yield from _family("quadloom_crawl_waits", figures.waits)
    for name, figure in _SERVICE_FIGURES.items() if figures.services else ():
        values = {without_password(load.url): figure(load) for load in figures.services}
        yield from _family(f"quadloom_service_{name}", values)
    for name in ("pages", "failed", "denied", "bytes", "findings", "quarantined", "replaced_workers"):
        yield from _value(f"quadloom_crawl_{name}", getattr(figures, name))


def _value(name: str, value: float) -> Iterator[str]:
    return _family(name, {"": value})


def _family(name: str, values: Mapping[str, int | float | object]) -> Iterator[str]:
    text, label, kind = FAMILIES[name]
    yield f"# TYPE {name} {kind}"
    yield f"# HELP {name} {text}"
    suffix = "_total" if kind == "counter" else ""
    for value, number in values.items():
        mark = f'{{{label}="{_escaped(value)}"}}' if label else ""
        yield f"{name}{suffix}{mark} {number}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
