"""Write the Grafana dashboard and the Prometheus alerts of `examples/cluster` from the list of metrics.

Every metric is drawn; what a person looks for first comes first. `python tools/build_dashboard.py` after a change of
`quadloom.web.api.metrics.FAMILIES`; a test compares the files with what this would write.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from quadloom.web.api.metrics import FAMILIES

FOLDER = Path(__file__).resolve().parents[1] / "examples/cluster"
DASHBOARD, ALERTS = FOLDER / "grafana-dashboard.json", FOLDER / "alerts.yaml"
_ROWS = {
    "The crawl": ("crawl_", "phase_"),
    "Workers": ("worker_",),
    "Frontier and pages": ("frontier_", "hosts", "pages_", "quads", "documents", "expected_"),
    "Services": ("service_",),
}
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3
_UNITS = {"bytes": "bytes", "seconds": "s"}

# name: expression, minutes for which it must hold, severity, what it means and what to do
_RULES = {
    "QuadloomNoWorker": (
        "sum(quadloom_worker_up) == 0", 2, "critical", "No worker is alive: start one with `quadloom worker`",
    ),
    "QuadloomWorkerDead": (
        "quadloom_worker_up == 0", 5, "warning", "{{ $labels.worker }} is dead; others have its shards. Start it again",
    ),
    "QuadloomWorkerSilent": (
        "quadloom_worker_silent_seconds > 15 and quadloom_worker_up == 1", 1, "warning",
        "{{ $labels.worker }} misses heartbeats: its machine, or its way to the database, is overloaded",
    ),
    "QuadloomStoreAway": (
        "quadloom_worker_waiting == 1", 1, "critical",
        "{{ $labels.worker }} waits for a store: `quadloom status` says which, and since when",
    ),
    "QuadloomClockWrong": (
        "abs(quadloom_worker_clock_error_seconds) > 1", 1, "warning",
        "The clock of {{ $labels.worker }} is wrong by {{ $value }} s: set it with NTP",
    ),
    "QuadloomDiskNearlyFull": (
        "quadloom_worker_disk_free_bytes < 5e9", 10, "warning", "Less than 5 GB are free at {{ $labels.worker }}",
    ),
    "QuadloomManyFailures": (
        "rate(quadloom_crawl_failed_total[10m]) > 0.5 * rate(quadloom_crawl_pages_total[10m]) "
        "and rate(quadloom_crawl_failed_total[10m]) > 0.1",
        10, "warning", "Many visits fail: `quadloom status` lists the reasons, with an example for each",
    ),
    "QuadloomProcessesReplaced": (
        "increase(quadloom_crawl_replaced_workers_total[15m]) > 5", 1, "warning",
        "Processes that transform pages die or exceed a limit: `quadloom logs` names the pages",
    ),
    "QuadloomStalled": (
        "sum(quadloom_worker_queued_urls) > 1000 and sum(rate(quadloom_worker_pages_total[10m])) == 0", 10, "critical",
        "URLs wait and no page is read: `quadloom status` says what for",
    ),
}  # fmt: skip


def dashboard() -> dict[str, Any]:
    """For Grafana's import; the data source is chosen there."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, prefixes in _ROWS.items():
        names = [name for name in FAMILIES if name.removeprefix("quadloom_").startswith(prefixes)]
        panels.append({"type": "row", "title": title, "gridPos": {"x": 0, "y": top, "w": 24, "h": 1}, "panels": []})
        for place, name in enumerate(names):
            line, column = divmod(place, _COLUMNS)
            at = {"x": column * _WIDTH, "y": top + 1 + line * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            panels.append(_panel(name, at))
        top += 1 + -(-len(names) // _COLUMNS) * _HEIGHT
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "title": "Quadloom",
        "uid": "quadloom",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, start=1)],
    }


def _panel(name: str, at: dict[str, int]) -> dict[str, Any]:
    text, label, kind = FAMILIES[name]
    by = f" by ({label})" if label else ""
    expression = f"sum{by} (rate({name}_total[5m]))" if kind == "counter" else f"sum{by} ({name})"
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "short")
    return {
        "type": "timeseries",
        "title": f"{name.removeprefix('quadloom_').replace('_', ' ')}{', a second' if kind == 'counter' else ''}",
        "description": text,
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": at,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": expression, "legendFormat": f"{{{{{label}}}}}" if label else "all"}],
    }


def alerts() -> dict[str, Any]:
    """Rules as Prometheus reads them (`rule_files`)."""
    rules = [
        {
            "alert": name,
            "expr": expression,
            "for": f"{minutes}m",
            "labels": {"severity": severity},
            "annotations": {"summary": text},
        }
        for name, (expression, minutes, severity, text) in _RULES.items()
    ]
    return {"groups": [{"name": "quadloom", "rules": rules}]}


def texts() -> dict[Path, str]:
    """File → what it should contain."""
    return {
        DASHBOARD: json.dumps(dashboard(), indent=1) + "\n",
        ALERTS: yaml.safe_dump(alerts(), sort_keys=False, width=1000),
    }


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
