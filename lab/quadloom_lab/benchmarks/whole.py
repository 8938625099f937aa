"""The whole pipeline compared with a tuned Scrapy + extruct + pyoxigraph, in turns on the same fake web: CPU per page.

    pip install --target /tmp/peers scrapy extruct uvloop
    python -m quadloom_lab.benchmarks.whole --peers /tmp/peers [--pages 10000] [--responses 800] [--rounds 2]

Both crawl from the same seeds on loopback without pauses, robots.txt obeyed, and store what they read. The figures
exclude the server and the rival's imports, but include Quadloom's, of two processes besides the main one: under 0.1 ms
per page at 10,000 pages (more if PYTHONDONTWRITEBYTECODE is set). `rival_scrapy.py` says what was tuned and what the
rival need not do. The rival stops after `--responses` pages of the same web, because it is an order of magnitude
slower.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

RIVAL = Path(__file__).with_name("rival_scrapy.py")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a whole crawl with Scrapy + extruct + pyoxigraph.")
    parser.add_argument("--peers", required=True, help="folder where scrapy and extruct were installed")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--responses", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    ours, theirs = [], []
    for _ in range(chosen.rounds):
        theirs.append(rival(chosen.peers, chosen.pages, chosen.hosts, chosen.responses))
        ours.append(own(chosen.pages, chosen.hosts))
    print(f"CPU-ms per page, {chosen.rounds} rounds by turns, medians")
    print(f"  quadloom                                    {median(ours):8.2f}   {shown(ours)}")
    print(f"  Scrapy + extruct + pyoxigraph, tuned        {median(theirs):8.2f}   {shown(theirs)}")
    print(f"  ratio                                       {median(theirs) / median(ours):8.1f}")


def own(pages: int, hosts: int) -> float:
    command = [sys.executable, "-m", "quadloom_lab", "bench", "pipeline", "--json", "--quiet"]
    answer = subprocess.run(
        [*command, "--pages", str(pages), "--hosts", str(hosts)], capture_output=True, text=True, check=True
    )
    row = json.loads(answer.stdout)
    print(f"quadloom  {row['visits']} visits, {row['quads']} quads, {row['cpu_ms_per_page']:.2f} ms", flush=True)
    return float(row["cpu_ms_per_page"])


def rival(peers: str, pages: int, hosts: int, responses: int) -> float:
    spec = WebSpec(seed=1, pages=pages, hosts=hosts, crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False)
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-rival-") as folder,
        serve_in_process(FakeWeb(spec), logging=False, prerender=True) as serving,
    ):
        # The peers' folder comes last, so that both use the same pyoxigraph and lxml.
        code = (
            f"import runpy, sys; sys.path.append({peers!r}); sys.argv = sys.argv[1:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        seeds = Path(folder, "seeds.json")
        seeds.write_text(json.dumps(serving.web.seeds), encoding="utf-8")
        words = [str(RIVAL), str(seeds), str(responses), str(Path(folder, "store"))]
        answer = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, env=os.environ, check=True
        )
    row = json.loads(answer.stdout.strip().splitlines()[-1])
    cost = row["cpu"] * 1000 / max(1, row["responses"])
    print(f"rival     {row['responses']} responses, {row['quads']} quads, {cost:.2f} ms", flush=True)
    return float(cost)


def shown(costs: list[float]) -> str:
    return " ".join(f"{cost:.2f}" for cost in costs)


if __name__ == "__main__":
    main()
