"""The examples do what their comments say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from command_line import quadloom
from fakeweb.scripted import ScriptedSite, html
from quadloom.cli.demo import demo_settings
from quadloom.cli.demo_sites import DemoServer
from quadloom.model.page import Page
from quadloom.model.subscription import Subscription
from quadloom.settings import Settings
from quadloom.settings.loading import load
from quadloom.stores.archive.warc_record import encode
from quadloom.warehouse import Warehouse
from waiting import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HTML = (("content-type", "text/html"),)
DATA = '{"@context": "https://schema.org", "@type": "Person", "name": "N"}'
GOOD = f'<title>t</title><script type="application/ld+json">{DATA}</script>'


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_is_complete() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    examples = {path.name for path in EXAMPLES.iterdir() if path.name != "README.md"}
    assert examples == {name.rstrip("/").partition("/")[0] for name in re.findall(r"\]\(([^)]+)\)", text)}


def test_one_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    with ScriptedSite({"/": html(GOOD + "<a href=/next>next</a>"), "/next": html(GOOD)}) as site:
        lines = ["[politeness]", "delay = 0.0", "[guard]", 'allow = ["127.0.0.0/8"]', "[crawl]", "max_wait = 1.0"]
        (tmp_path / "quadloom.toml").write_text("\n".join(lines), encoding="utf-8")
        loaded(EXAMPLES / "one-site/crawl.py").main(site.url(), "a@b.example")
    out = capsys.readouterr().out
    assert f"new {site.url('/next')}" in out
    assert "2  http://schema.org/Person" in out


def test_audit_in_ci(tmp_path: Path) -> None:
    script = (EXAMPLES / "audit-in-ci/audit.sh").read_text(encoding="utf-8")
    assert "quadloom inspect --fail-on error" in script
    (tmp_path / "good.html").write_text(GOOD, encoding="utf-8")
    assert quadloom("inspect", "--fail-on", "error", "good.html", cwd=tmp_path).returncode == 0
    (tmp_path / "bad.html").write_text(GOOD.replace('"N"', '"N", "birthDate": "soon"'), encoding="utf-8")
    assert quadloom("inspect", "--fail-on", "error", "good.html", "bad.html", cwd=tmp_path).returncode == 1


def test_webhook(tmp_path: Path) -> None:
    notices: list[dict[str, object]] = []
    secret = "a secret of the example"
    receiver = loaded(EXAMPLES / "webhook/receiver.py")
    server = receiver.serve(0, secret, notices.append)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    hook = f"http://127.0.0.1:{server.server_address[1]}/"
    assert not receiver.is_signed({"webhook-timestamp": str(int(time.time())), "webhook-id": "1"}, b"{}", secret)
    try:
        with ScriptedSite({"/": html(GOOD)}) as site:
            settings = load(environ={}, overrides=site.settings()).settings
            with Warehouse.open(tmp_path / "w", settings=settings) as warehouse:
                wish = Subscription(id="page", urls=(site.url(),), webhook=hook, secret=secret)
                warehouse.subscriptions.add(warehouse.subscriptions.checked(wish))
                for _ in warehouse.crawl([site.url()]):
                    pass
                wait_until(lambda: notices, "the last notices may leave after the last page, but they leave")
    finally:
        server.shutdown()
        server.server_close()
    assert [(notice["kind"], notice["url"]) for notice in notices] == [("new", site.url())]


def test_stylesheet() -> None:
    folder = EXAMPLES / "stylesheet"
    arguments = ("inspect", "recipe.xml", "--url", "https://example.org/recipes/1", "--format", "turtle")
    done = quadloom(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Elderflower syrup" in done.stdout and "https://example.org/recipes/syrup.jpg" in done.stdout
    assert done.stdout.count("umbels") == 1


def test_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DemoServer() as sites:
        settings = demo_settings(Settings(), sites.hosts_override())
        with Warehouse.open("quadloom-demo", settings=settings) as warehouse:
            for _ in warehouse.crawl([sites.homes[0]], max_pages=25):
                pass
    cells = json.loads((EXAMPLES / "notebook/explore.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    rows = names["rows"]
    assert isinstance(rows, list) and len(rows) > 3
    assert all(cell.get("outputs") in (None, []) for cell in cells), "stored without results"


def test_plug_in_package() -> None:
    folder = EXAMPLES / "quadloom-pdf-metadata"
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    command = [sys.executable, "-m", "pytest", *options, str(folder / "tests")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.slow  # starting Ray takes a minute on a busy machine
def test_ray_data_reads_archives(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install quadloom[ray]")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'quadloom[parquet]'")
    for name in "ab":
        page = Page(f"http://{name}.example/", f"http://{name}.example/", 200, HTML, GOOD.encode(), 1.0, 0.1)
        (tmp_path / f"{name}.warc.gz").write_bytes(encode(page).member)
    command = [sys.executable, str(EXAMPLES / "archives/ray_data.py"), "a.warc.gz", "b.warc.gz"]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=110)
    rows = parquet.read_table(tmp_path / "pages").to_pylist()
    assert sorted((row["url"], *row["types"]) for row in rows) == [
        ("http://a.example/", "http://schema.org/Person"),
        ("http://b.example/", "http://schema.org/Person"),
    ]
