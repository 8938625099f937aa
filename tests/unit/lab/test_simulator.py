"""The simulated webs keep their promises, and the simulator agrees with the closed forms."""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from quadloom.errors import UsageError
from quadloom.planning.policy.objectives import freshness, xyleme_cost
from quadloom_lab.charts import Series, line_chart, svg, ticks
from quadloom_lab.scheduling.optimal_refresh import optimal_rates
from quadloom_lab.scheduling.simulated_signals import Signals, Source
from quadloom_lab.scheduling.simulated_web import (
    PROCESSES,
    Process,
    SimulatedWeb,
    WebShape,
    replayed_web,
    simulated_web,
)
from quadloom_lab.scheduling.simulator import SimulationPlan, SimulationReport, run, simulate

SMALL = WebShape(pages=300, days=200.0, spread=1.0)


@pytest.mark.parametrize("process", PROCESSES)
def test_processes_have_the_rates_they_claim(process: Process) -> None:
    web = simulated_web(process, WebShape(pages=2000, days=300.0, spread=1.0), np.random.default_rng(2))
    assert web.changes() == pytest.approx(web.rates.sum() * 300.0, rel=0.04)


def gaps_of(process: Process) -> float:
    """Coefficient of variation of the gaps between changes of equally fast pages."""
    web = simulated_web(process, WebShape(pages=200, days=2000.0, spread=0.0), np.random.default_rng(2))
    pages, now, gaps = np.arange(200), np.zeros(200), []
    for step in range(40):
        later = web.next_change(pages, now)
        if step:
            gaps.append((later - now)[np.isfinite(later)])
        now = np.where(np.isfinite(later), later, now)
    found = np.concatenate(gaps)
    found = found[found > 0]
    return float(found.std() / found.mean())


def test_processes_differ_as_they_should() -> None:
    assert gaps_of("poisson") == pytest.approx(1.0, abs=0.05)
    assert gaps_of("bursty") > 1.5
    assert gaps_of("regular") == pytest.approx(0.5, abs=0.05)
    assert gaps_of("periodic") < 0.01


def test_changes_are_found_on_the_right_page() -> None:
    web = SimulatedWeb(np.array([0, 0, 2]), np.array([1.0, 5.0, 3.0]), np.ones(3), np.ones(3), 10.0)
    pages = np.array([0, 0, 0, 1, 2, 2])
    times = np.array([0.0, 1.0, 5.0, 0.0, 2.9, 3.0])
    assert web.next_change(pages, times).tolist() == [1.0, 5.0, np.inf, np.inf, 3.0, np.inf]
    assert web.last_change(pages, times).tolist() == [-np.inf, 1.0, 5.0, -np.inf, -np.inf, 3.0]


@pytest.mark.parametrize("policy", ["harmonic", "xyleme", "freshness"])
def test_known_rates_reach_the_closed_form(policy: str) -> None:
    web = simulated_web("poisson", SMALL, np.random.default_rng(3))
    plan = SimulationPlan(per_page=0.2, slot=0.1, warm_up=60.0)
    row = simulate(web, policy, "known", plan)  # type: ignore[arg-type]
    reads = optimal_rates(web.weights, web.rates, 60.0, policy=policy)  # type: ignore[arg-type]
    assert row.freshness == pytest.approx(freshness(web.weights, web.rates, reads), abs=0.015)
    if policy != "freshness":  # which starves pages: their cost grows with the length of the run
        assert row.cost == pytest.approx(xyleme_cost(web.weights, web.rates, reads), rel=0.05)
    assert row.reads_per_day == pytest.approx(60.0, rel=0.01) and row.slot_spread < 0.05


def test_the_same_seed_gives_the_same_report_and_a_table() -> None:
    def report(*processes: Process, seed: int = 1) -> SimulationReport:
        return run(
            processes, ("harmonic", "by-rate"), shape=WebShape(pages=100, days=80.0, spread=1.0), seed=seed,
            plan=SimulationPlan(per_page=0.1, slot=1.0, warm_up=20.0),
        )  # fmt: skip

    one = report("poisson", "switching")
    assert one == report("poisson", "switching") and len(one.rows) == 8
    assert report("poisson", seed=2) != report("poisson")
    lines = one.table().splitlines()
    assert len(lines) == 9 and lines[0].startswith("process") and lines[-1].startswith("switching  by-rate")
    with pytest.raises(UsageError):
        run(("brownian",))  # type: ignore[arg-type]


def test_signals_announce_what_they_promise() -> None:
    web = simulated_web("poisson", WebShape(pages=400, days=300.0, spread=0.5), np.random.default_rng(4))
    pages, last = np.arange(400), np.full(400, 100.0)
    changed = web.next_change(pages, last) <= 120.0
    true_age = 120.0 - web.last_change(pages, np.full(400, 120.0))

    def said(source: Source) -> np.ndarray:
        return Signals(source, web, check=False, rng=np.random.default_rng(1)).ages(pages, last, 120.0, changed)

    np.testing.assert_allclose(said("dates")[changed], true_age[changed])
    assert np.isnan(said("dates")[~changed]).all()
    lying = said("lying-dates")
    stamped = web.hosts % 2 == 0
    assert (lying[stamped] == 0.0).all()  # stamped at this very midnight
    np.testing.assert_array_equal(lying[~stamped], said("dates")[~stamped])
    noisy = Signals("lastmod", web, check=True, rng=np.random.default_rng(1))
    announced = ~np.isnan(said("lastmod"))
    assert (announced & ~changed).any() and (changed & ~announced).any()
    assert np.isnan(noisy.ages(pages, last, 120.0, changed)).all()  # nothing is proved yet
    push = Signals("push", web, check=True, rng=np.random.default_rng(1))
    assert not (push.noticed(pages, last, 120.0) & ~changed).any()
    assert push.noticed(pages, last, 120.0).sum() == pytest.approx(0.93 * changed.sum(), rel=0.06)


def test_trust_mends_lies_and_push_beats_guessing() -> None:
    rows = {
        row.estimator: row
        for row in run(
            ("poisson",), ("harmonic",), ("bits", "dates", "lying-dates", "lying-dates+trust", "push"),
            shape=WebShape(pages=400, days=240.0), plan=SimulationPlan(per_page=0.1, slot=1.0, warm_up=100.0),
        ).rows
    }  # fmt: skip
    assert rows["lying-dates"].rate_error > 1.2 * rows["bits"].rate_error
    assert rows["lying-dates+trust"].rate_error < 0.85 * rows["lying-dates"].rate_error
    assert rows["dates"].rate_error < rows["bits"].rate_error
    assert rows["push"].freshness > rows["bits"].freshness + 0.05
    assert rows["push"].rate_error < 0.5


def test_histories_are_replayed_from_each_pages_birth(tmp_path: Path) -> None:
    history = tmp_path / "history.csv"
    history.write_text("page,changed_at\na,0\na,864000\nb,1728000\na,8640000\n")
    web = replayed_web(history, np.random.default_rng(1))
    assert web.pages == 2 and web.changes() == 2
    np.testing.assert_allclose(web.born, [0.0, 20.0])
    assert web.next_change(np.array([0, 1]), np.array([0.0, 20.0])).tolist() == [10.0, np.inf]
    with pytest.raises(UsageError):
        history.write_text("nothing\n")
        replayed_web(history, np.random.default_rng(1))


def test_plots_are_well_formed(tmp_path: Path) -> None:
    report = run(
        ("poisson",), ("harmonic",), ("known",), shape=SMALL, plan=SimulationPlan(per_page=0.1, slot=1.0, warm_up=50.0)
    )
    report.save(tmp_path / "a.svg")
    tree = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(tree.findall("{http://www.w3.org/2000/svg}polyline")) == 1
    assert "a &lt; b" in svg([Series("a < b", [(0, 0), (1, 1)])], title="t", x_label="x", y_label="y")
    ElementTree.fromstring(svg([], title="t", x_label="x", y_label="y"))
    with pytest.raises(UsageError):
        line_chart(tmp_path / "a.gif", [], title="", x_label="", y_label="")


def test_png_plots_are_images_or_say_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [Series("a", [(0, 0.1), (1, 0.9)], [(0, 0.0, 0.2), (1, 0.8, 1.0)]), Series("b", [(0, 0.5), (1, 0.4)])]
    with monkeypatch.context() as patch:
        patch.setattr("quadloom_lab.charts.find_spec", lambda name: None)
        with pytest.raises(UsageError) as caught:
            line_chart(tmp_path / "a.png", lines, title="t", x_label="x", y_label="y")
        assert "quadloom[plots]" in caught.value.hint and not (tmp_path / "a.png").exists()
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    line_chart(tmp_path / "a.png", lines, title="t", x_label="x", y_label="y")
    image = (tmp_path / "a.png").read_bytes()
    assert image.startswith(b"\x89PNG\r\n\x1a\n") and image.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", image[16:24])
    assert width > 600 and height > 300


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.7, 0.83), (0, 400), (-3, 12_345), (5, 5), (0, 0), (0.00012, 0.00034)]
)
def test_ticks_enclose_the_range(low: float, high: float) -> None:
    found = ticks(low, high)
    assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 10
    assert found == sorted(set(found))
