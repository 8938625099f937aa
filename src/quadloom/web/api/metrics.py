"""`/metrics` for Prometheus and the like, and `/health` for load balancers and supervisors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from starlette.responses import Response

from quadloom.asking.report.numbers import counts_of, store_counts
from quadloom.crawling.cluster.view import ClusterView
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


class _Figures(msgspec.Struct):
    """The figures taken from a running crawl's report."""

    pages: int = 0
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
    yield from _family("quadloom_frontier_urls", "URLs by state", "state", stats)
    yield from _family("quadloom_hosts", "known hosts, and hosts blocked now", "state", hosts)
    for word in ("outcome", "kind", "status"):
        text = f"pages by {word} of their newest visit"
        yield from _family(f"quadloom_pages_by_{word}", text, word, counts_of(counts, word))
    yield from _family(
        "quadloom_quads", "statements", "", {"": statements_of(warehouse.stores.catalog, warehouse.stores.quads)}
    )
    yield from _family("quadloom_documents", "documents in the text index", "", {"": len(warehouse.stores.text)})
    report = request.site.crawl.report()
    live = msgspec.convert(report, _Figures).expected if report is not None else None
    expected = live or schedule_of(warehouse.stores.catalog, warehouse.settings).planner.expected()
    if expected is not None:
        yield from _expected(expected)
    yield from _family("quadloom_crawl_running", "1 while a crawl runs", "", {"": int(report is not None)})
    if report is not None:
        yield from _crawl(msgspec.convert(report, _Figures))
    cluster = request.site.crawl.cluster()
    if cluster is not None:
        yield from _workers(cluster)
    yield "# EOF"


# Figures of each worker of a cluster: name, attribute, help, kind.
_WORKER_FAMILIES = (
    ("shards", "shards", "shards that it owns", "gauge"),
    ("queued_urls", "queued", "URLs of its shards that wait", "gauge"),
    ("pages_per_second", "rate", "pages a second now", "gauge"),
    ("cores_busy", "cores_busy", "cores used since its start", "gauge"),
    ("machine_load", "load", "load of its machine", "gauge"),
    ("memory_used_bytes", "memory_used", "of its processes", "gauge"),
    ("memory_free_bytes", "memory_free", "of its machine", "gauge"),
    ("disk_free_bytes", "disk_free", "of its directory", "gauge"),
    ("pages", "pages", "pages since its start", "counter"),
    ("failures", "failed", "failed visits since its start", "counter"),
)
_SERVICE_FAMILIES = (
    ("requests", "requests", "requests to each instance", "counter"),
    ("failures", "failures", "failed requests", "counter"),
    ("in_progress", "in_progress", "requests in progress", "gauge"),
    ("seconds", "mean_seconds", "moving mean of an answer", "gauge"),
)


def _workers(cluster: ClusterView) -> Iterator[str]:
    """Figures of each worker, by its name. Those of the crawl are the totals of all."""
    named = {worker.name: worker for worker in cluster.workers}
    alive = {name: worker for name, worker in named.items() if worker.state != "dead"}
    up = {name: int(name in alive) for name in named}
    silent = {name: worker.silent_seconds for name, worker in named.items()}
    yield from _family("quadloom_worker_up", "1 while a worker of the cluster is alive", "worker", up)
    yield from _family("quadloom_worker_silent_seconds", "since its last heartbeat", "worker", silent)
    for name, attribute, text, kind in _WORKER_FAMILIES:
        values = {worker: getattr(view, attribute) for worker, view in alive.items()}
        yield from _family(f"quadloom_worker_{name}", text, "worker", values, kind)


def _expected(found: ExpectedFreshness) -> Iterator[str]:
    for name, value, text in (
        ("freshness", found.freshness, "expected share of time that a copy is up to date, weighted by page"),
        ("cost", found.cost, "expected COST of the Xyleme paper, 0 = nothing is ever obsolete"),
        ("reads_per_second", found.reads, "visits a second that the refresh schedule plans"),
    ):
        yield from _family(f"quadloom_expected_{name}", text, "", {"": value})


def _crawl(figures: _Figures) -> Iterator[str]:
    yield from _family("quadloom_phase_pages", "pages through each phase", "phase", figures.phases, "counter")
    yield from _family("quadloom_phase_cpu_seconds", "CPU by phase", "phase", figures.cpu, "counter")
    yield from _family("quadloom_phase_rate", "pages per second through each phase", "phase", figures.rates)
    yield from _family("quadloom_phase_queue", "pages that wait before a phase", "phase", figures.queues)
    yield from _family("quadloom_crawl_waits", "share of time that this held requests back", "by", figures.waits)
    yield from _services(figures.services)
    for name, value, text in (
        ("pages", figures.pages, "pages of this crawl"),
        ("bytes", figures.bytes, "bytes of this crawl"),
        ("findings", figures.findings, "findings of this crawl"),
        ("quarantined", figures.quarantined, "pages of this crawl that killed two workers"),
        ("replaced_workers", figures.replaced_workers, "processes of this crawl that died or exceeded a limit"),
    ):
        yield from _family(f"quadloom_crawl_{name}", text, "", {"": value}, "counter")


def _services(loads: Sequence[InstanceLoad]) -> Iterator[str]:
    for name, attribute, text, kind in _SERVICE_FAMILIES if loads else ():
        values = {without_password(load.url): getattr(load, attribute) for load in loads}
        yield from _family(f"quadloom_service_{name}", text, "instance", values, kind)


def _family(
    name: str, text: str, label: str, values: Mapping[str, int | float | object], kind: str = "gauge"
) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    yield f"# HELP {name} {text}"
    suffix = "_total" if kind == "counter" else ""
    for value, number in values.items():
        mark = f'{{{label}="{_escaped(value)}"}}' if label else ""
        yield f"{name}{suffix}{mark} {number}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
