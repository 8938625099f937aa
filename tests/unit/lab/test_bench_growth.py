"""`quadloom bench growth`: figures of every step, and charts of them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from command_line import quadloom


def test_every_step_has_its_figures_and_its_place_in_the_charts(tmp_path: Path) -> None:
    options = ("--pages", "60", "--hosts", "3", "--step", "20", "--plot", str(tmp_path))
    done = quadloom("--json", "bench", "growth", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert [step["pages"] for step in steps] == [20, 40, 60]
    assert all(step["cpu_ms"] > 0.0 and step["owner_megabytes"] > step["mapped_megabytes"] for step in steps)
    for name, curves in (("growth-cpu.svg", 3), ("growth-size.svg", 3)):
        chart = ElementTree.parse(tmp_path / name)
        lines = chart.findall(".//{http://www.w3.org/2000/svg}polyline")
        assert [len(line.get("points", "").split()) for line in lines] == [3] * curves
