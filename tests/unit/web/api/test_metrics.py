"""What `/metrics` has, and the dashboard and the alerts that are made of it."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType

import yaml

from quadloom.crawling.cluster.view import ClusterView, WorkerView
from quadloom.model.service import InstanceLoad
from quadloom.web.api.metrics import FAMILIES, _Figures, crawl_lines, worker_lines
from unit import ROOT

_SAMPLE = re.compile(r"(quadloom_\w+?)(?:_total)?(?:\{.*\})? \S+")
_NAME = re.compile(r"quadloom_\w+")


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_dashboard", ROOT / "tools/build_dashboard.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines() -> list[str]:
    one = {"one": 1}
    figures = _Figures(phases=one, cpu={"one": 1.0}, rates={"one": 1.0}, queues=one, waits={"one": 1.0})
    figures.services = [InstanceLoad("http://one/", 3)]
    workers = [
        WorkerView(name="a", state="running", waits_for={"the archive": 1.0}, clock_error=300.0),
        WorkerView(name="b", state="dead", silent_seconds=99.0),
    ]
    return [*crawl_lines(figures), *worker_lines(ClusterView(workers))]


def test_every_family_of_a_crawl_and_its_workers_is_on_the_list_and_has_a_sample() -> None:
    found = {match[1] for line in lines() if (match := _SAMPLE.fullmatch(line))}
    assert found == {name for name in FAMILIES if name.startswith(("quadloom_crawl_", "quadloom_phase_"))} - {
        "quadloom_crawl_running"
    } | {name for name in FAMILIES if name.startswith(("quadloom_worker_", "quadloom_service_"))}


def test_an_incident_is_in_the_metrics() -> None:
    found = lines()
    assert 'quadloom_worker_up{worker="b"} 0' in found and 'quadloom_worker_waiting{worker="a"} 1' in found
    assert 'quadloom_worker_clock_error_seconds{worker="a"} 300.0' in found
    assert 'quadloom_worker_silent_seconds{worker="b"} 99.0' in found


def test_dashboard_and_alerts_are_those_of_the_list() -> None:
    for path, text in builder().texts().items():
        assert path.read_text(encoding="utf-8") == text, f"run tools/build_dashboard.py: {path.name} is of before"


def test_the_dashboard_draws_every_metric_and_no_other() -> None:
    dashboard = json.loads(builder().DASHBOARD.read_text(encoding="utf-8"))
    drawn = {name for panel in dashboard["panels"] for target in panel.get("targets", ()) for name in _metrics(target)}
    assert drawn == FAMILIES.keys()
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places), "no panel lies on another"


def test_alerts_ask_for_metrics_that_there_are() -> None:
    rules = yaml.safe_load(builder().ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        assert _metrics(rule) <= FAMILIES.keys() and rule["annotations"]["summary"], rule["alert"]


def _metrics(target: dict[str, str]) -> set[str]:
    """Names in an expression; counters have `_total` there, and others must not."""
    found = set()
    for name in _NAME.findall(target["expr"]):
        family = name.removesuffix("_total")
        assert (FAMILIES[family].kind == "counter") == name.endswith("_total"), name
        found.add(family)
    return found
