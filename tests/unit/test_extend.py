"""docs/howto/extend.md is followed to the letter, in a copy of the sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from unit import ROOT

PAGE = (ROOT / "docs/howto/extend.md").read_text(encoding="utf-8")
_BLOCK = r"```\w*\n(?P<{}>.*?)```\n"
STEP = re.compile(
    r"^New file `(?P<new>[\w/.]+)`:\n\n"
    + _BLOCK.format("content")
    + r"|^In `(?P<changed>[\w/.]+)`, replace\n\n"
    + _BLOCK.format("old")
    + r"\nwith\n\n"
    + _BLOCK.format("text"),
    re.MULTILINE | re.DOTALL,
)
TRY = """
import json, pathlib, sys
import numpy as np
from starlette.testclient import TestClient
import quadloom
from quadloom.planning.policy import objectives
from quadloom_lab.scheduling.optimal_refresh import optimal_rates
from quadloom.settings.loading import load
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState

body = b"<title>t</title><dl><dt>quad</dt> <dd>a statement and its graph</dd><dt>lonely</dt></dl>"
result = quadloom.transform(body, url="http://a.example/", content_type="text/html")
settings = load(environ={}, overrides={"freshness.policy": "by-weight"}).settings
weights, rates = np.array([1.0, 3.0]), np.array([5.0, 1.0])
quadloom.open("w", settings=settings).close()
site = SiteState(pathlib.Path("w"), settings)
with TestClient(create_app(site), base_url="http://localhost") as client:
    page = client.get("/kinds", headers={"accept": "text/html"})
    twin = client.get("/kinds.json")
print(json.dumps({
    "from": quadloom.__file__,
    "quads": result.nquads.decode(),
    "reads": optimal_rates(weights, rates, 8.0, policy=settings.freshness.policy).tolist(),
    "period": objectives.ideal_period("by-weight", 2.0, 1.0, 10.0, 0.95),
    "value": objectives.value("by-weight", weights, rates, np.array([2.0, 2.0])).tolist(),
    "page": [page.status_code, page.text],
    "twin": [twin.status_code, twin.json()],
}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "vendor", "*.egg-info"))
    (folder / "docs/reference").mkdir(parents=True)
    shutil.copy(ROOT / "docs/reference/http.md", folder / "docs/reference/http.md")
    for step in STEP.finditer(PAGE):
        if step["new"]:
            assert not (folder / step["new"]).exists(), f"{step['new']} is there already"
            (folder / step["new"]).write_text(step["content"], encoding="utf-8")
            continue
        path, old, new = folder / step["changed"], step["old"].rstrip("\n"), step["text"].rstrip("\n")
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{step['changed']} has these lines {text.count(old)} times:\n{old}"
        path.write_text(text.replace(old, new), encoding="utf-8")
    return folder


def test_every_block_of_the_page_is_a_step() -> None:
    steps = list(STEP.finditer(PAGE))
    blocks = sum(1 if step["new"] else 2 for step in steps)
    assert PAGE.count("```") == 2 * blocks and len(steps) >= 12


def test_the_walks_lead_to_a_syntax_a_policy_and_a_page(copy: Path, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(copy / "src"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", TRY],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout)
    assert found["from"].startswith(str(copy))
    skos = "http://www.w3.org/2004/02/skos/core#"
    assert f'<{skos}prefLabel> "quad"' in found["quads"]
    assert f'<{skos}definition> "a statement and its graph"' in found["quads"] and "lonely" not in found["quads"]
    assert found["reads"] == pytest.approx([2.0, 6.0]) and found["period"] == 5.0 and found["value"] == [2.0, 6.0]
    assert found["page"][0] == 200 and "<h1>Kinds of documents</h1>" in found["page"][1]
    assert found["twin"] == [200, {"ok": True, "kinds": {}}]
