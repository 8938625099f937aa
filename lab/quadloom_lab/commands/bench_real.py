"""`quadloom bench real`: the cost of pages as they are, by phase, kind and step, and the ratio to another crawler."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

import quadloom
import quadloom_lab
from quadloom.cli.session import Session, session
from quadloom.settings import TransformSettings
from quadloom_lab.realweb.server import ServedWeb, free_port, serving
from quadloom_lab.realweb.steps import StepCosts, step_costs

_RIVAL = Path(quadloom_lab.__file__).parent / "benchmarks/rival_scrapy.py"
_RIVALS_SYNTAXES = ["jsonld", "microdata", "rdfa", "opengraph", "rdfxml", "turtle"]
_SAMPLE = 300  # pages whose steps are measured
_CONFIG = """\
[crawl]
scope = "any"
contact = "bench@quadloom.invalid"
[politeness]
delay = 0
per_site = 32
max_crawl_delay = 0
[guard]
allow = ["127.0.0.0/8"]
"""
_LEAN = f"[index]\ntext = false\nschedule = false\n[transform]\nsyntaxes = {json.dumps(_RIVALS_SYNTAXES)}\n"


class CrawlCost(NamedTuple):
    """CPU-ms per page, processes' start included, and its parts by phase as the crawl counts them."""

    cost: float
    pages_per_second: float
    phases: dict[str, float]


def real(
    *,
    pages: int = 1500,
    crawled: int = 1000,
    hosts: int = 20,
    seed: int = 7,
    rounds: int = 2,
    skeletons: Path | None = None,
    peers: Path | None = None,
    steps_only: bool = False,
    small: bool = False,
) -> None:
    """Crawl a web of real-like pages without pauses; print CPU-ms per page by phase, kind and step.

    Parameters
    ----------
    pages
        pages of the web
    crawled
        pages to crawl in each round
    hosts
        number of hosts
    seed
        seed of the web
    rounds
        crawls of each program, by turns; the best counts
    skeletons
        folder of HTML files whose markup the pages get [default: generated markup]
    peers
        folder where Scrapy, extruct and uvloop were installed with `pip install --target`; they crawl by turns
    steps_only
        measure kinds and steps in this process, without a crawl
    small
        pages of 42 KB, 50 links and 27 statements in the mean instead of 150 KB, 120 links and 90 statements
    """
    s = session()
    spec = ServedWeb(pages, hosts, seed, free_port(), str(skeletons.resolve()) if skeletons else "", small)
    web = spec.web()
    sample = [web.page(number) for number in range(0, pages, max(1, pages // _SAMPLE))]
    costs = step_costs(sample, s.settings)
    lean = step_costs(
        sample, msgspec.structs.replace(s.settings, transform=TransformSettings(syntaxes=list(_RIVALS_SYNTAXES)))
    )
    crawls: dict[str, list[CrawlCost]] = {}
    if not steps_only:
        with serving(spec), tempfile.TemporaryDirectory(prefix="quadloom-real-") as folder:
            for turn in range(rounds):
                for name, config in (("all duties", _CONFIG), ("the rival's duties", _CONFIG + _LEAN)):
                    warehouse = Path(folder, f"{turn}-{len(config)}")
                    crawls.setdefault(name, []).append(_own(config, web.seeds, crawled, warehouse))
                if peers is not None:
                    place = Path(folder, f"rival-{turn}")
                    crawls.setdefault("rival", []).append(_rival(peers, web.seeds, crawled, place))
    _report(s, costs, lean, {name: min(runs) for name, runs in crawls.items()})


def _own(config: str, seeds: list[str], crawled: int, warehouse: Path) -> CrawlCost:
    warehouse.mkdir()
    file = warehouse / "bench.toml"
    file.write_text(config, encoding="utf-8")
    command = [sys.executable, "-m", "quadloom", "--config", str(file), "-w", str(warehouse / "w"), "--json"]
    path = os.pathsep.join([str(Path(quadloom.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    before = _children()
    done = subprocess.run(
        [*command, "crawl", *seeds, "--max-pages", str(crawled)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
    )
    used = _children() - before
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"the crawl printed no report: {done.stderr[-300:]}")
    report = json.loads(lines[-1])
    found = max(1, report["pages"])
    phases = {name: round(seconds * 1000 / found, 3) for name, seconds in report["cpu"].items()}
    phases["start, command"] = round(used * 1000 / found - sum(phases.values()), 3)
    return CrawlCost(used * 1000 / found, found / report["seconds"], phases)


def _children() -> float:
    """CPU seconds of all programs that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _rival(peers: Path, seeds: list[str], crawled: int, folder: Path) -> CrawlCost:
    folder.mkdir()
    (folder / "seeds.json").write_text(json.dumps(seeds), encoding="utf-8")
    # The peers' folder comes last, so that both use the same pyoxigraph and lxml.
    code = (
        f"import runpy, sys; sys.path.append({str(peers.resolve())!r}); sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    words = [str(_RIVAL), str(folder / "seeds.json"), str(crawled), str(folder / "store")]
    answer = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    row = json.loads(answer.stdout.strip().splitlines()[-1])
    found = max(1, row["responses"])
    return CrawlCost(row["cpu"] * 1000 / found, found / row["seconds"], {})


def _report(s: Session, costs: StepCosts, lean: StepCosts, crawls: dict[str, CrawlCost]) -> None:
    rival = crawls.get("rival")
    ratios = {name: round(rival.cost / one.cost, 2) for name, one in crawls.items()} if rival is not None else {}
    if s.json:
        s.emit(
            {
                "crawls": {name: one._asdict() for name, one in crawls.items()},
                "ratios": ratios,
                "kinds": [kind._asdict() for kind in costs.kinds],
                "steps": dict(costs.steps),
                "steps_of_the_rivals_duties": dict(lean.steps),
            }
        )
        return
    for name, one in crawls.items():
        ratio = f"\trival / this {ratios[name]}" if name in ratios and name != "rival" else ""
        s.write(f"{name}\t{one.cost:.2f} CPU-ms per page\t{one.pages_per_second:.0f} pages/s{ratio}")
        for phase, cost in one.phases.items():
            s.write(f"  {phase}\t{cost:.3f}")
    s.write(f"\nfrom page to stores, CPU-ms per page\t{costs.total:.3f}\t(the rival's duties {lean.total:.3f})")
    for kind in costs.kinds:
        size = f"{kind.size / 1000:.0f} KB\t{kind.statements:.0f} statements"
        s.write(f"  {kind.kind}\t{kind.cost:.3f}\t{kind.pages} pages\t{size}")
    s.write("by step, over all kinds")
    for name, cost in costs.steps:
        s.write(f"  {name}\t{cost:.3f}")
