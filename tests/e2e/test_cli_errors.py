"""What goes wrong at the command line: a clear message, a hint, the right exit code, nothing lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import clean_environment, quadloom
from quadloom.cli.main import run
from quadloom.warehouse import Warehouse


def in_own_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quadloom", *arguments],
        cwd=cwd,
        env=clean_environment(cwd),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def complained(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, (done.returncode, done.stderr)
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize("url", ["not a url", "ftp://example.org/", "http://", "javascript:alert(1)"])
def test_a_wrong_url(tmp_path: Path, url: str) -> None:
    complained(quadloom("crawl", url, "--contact", "a@b.example", cwd=tmp_path), 2, "not a web address")


def test_a_process_of_its_own_complains_in_the_same_words(tmp_path: Path) -> None:
    arguments = ("crawl", "not a url", "--contact", "a@b.example")
    alone, here = in_own_process(*arguments, cwd=tmp_path), quadloom(*arguments, cwd=tmp_path)
    assert (alone.returncode, alone.stdout, alone.stderr) == (here.returncode, here.stdout, here.stderr)


def test_an_address_as_people_write_it(tmp_path: Path) -> None:
    complained(quadloom("crawl", "example.org/events", cwd=tmp_path), 2, "https://example.org/events")


def test_a_first_crawl_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    complained(quadloom("crawl", "https://example.org/", cwd=tmp_path), 3, "contact")
    complained(quadloom("crawl", cwd=tmp_path), 2, "nothing to crawl", "quadloom crawl https://")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("contact", "hint"),
    [("nonsense", "you@example.org"), ("example.org/bot", "did you mean https://example.org/bot"), ("a@b c", "you@")],
)
@pytest.mark.parametrize("command", [("crawl", "https://example.org/"), ("topic", "travel")])
def test_a_contact_that_no_site_could_use(tmp_path: Path, command: tuple[str, ...], contact: str, hint: str) -> None:
    complained(quadloom(*command, "--contact", contact, cwd=tmp_path), 3, repr(contact), hint)
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_is_missing_costs_no_warehouse(tmp_path: Path) -> None:
    config = tmp_path / "quadloom.toml"
    config.write_text('[crawl]\nbrowser = "auto"\nbrowser_path = "/no/such/browser"\n', encoding="utf-8")
    done = quadloom("crawl", "http://127.0.0.1:9/", "--contact", "a@b.example", cwd=tmp_path)
    assert done.returncode == 3 and "crawl.browser" in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == [config]


def test_refresh_makes_no_warehouse(tmp_path: Path) -> None:
    complained(quadloom("refresh", "https://example.org/", cwd=tmp_path), 6, "no warehouse")
    assert list(tmp_path.iterdir()) == []


def test_a_link_strategy_that_cannot_be_used_costs_no_url(tmp_path: Path) -> None:
    crawl = ("crawl", "http://127.0.0.1:9/", "--contact", "a@b.example", "--strategy")
    (tmp_path / "bad.rq").write_text("SELECT ?target WHERE {", encoding="utf-8")
    complained(quadloom(*crawl, "fedes", cwd=tmp_path), 3, "'fedes'", "did you mean feeds")
    complained(quadloom(*crawl, "external,feeds", cwd=tmp_path), 3, "--strategy external --strategy feeds")
    complained(quadloom(*crawl, "missing.rq", cwd=tmp_path), 3, "missing.rq")
    complained(quadloom(*crawl, "bad.rq", cwd=tmp_path), 3, "bad.rq")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.rq"]


def test_a_name_that_is_misspelt_is_no_success(tmp_path: Path) -> None:
    """A check of a site in CI must not pass because the site's name is wrong."""
    with Warehouse.open(tmp_path / "quadloom-data"):
        pass
    complained(quadloom("audit", "--site", "nosuch.example", "--fail-on", "error", cwd=tmp_path), 4, "nosuch.example")
    complained(quadloom("changes", "--subscription", "nosuch", cwd=tmp_path), 4, "'nosuch'", "subscribe list")
    complained(quadloom("refresh", "--site", "nosuch.example", cwd=tmp_path), 0, "0 pages", "quadloom sites")
    complained(quadloom("sparql", "query.rq", cwd=tmp_path), 2, "a file", "sparql -f query.rq")
    complained(quadloom("config", "show", "nosuch", cwd=tmp_path), 2, "unexpected argument 'nosuch'")


def test_inspect_says_once_why_a_page_cannot_be_fetched_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "quadloom.toml").write_text('[guard]\nallow = ["127.0.0.0/8"]\n', encoding="utf-8")
    done = quadloom("inspect", "http://127.0.0.1:9/", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("Could not connect") == 1, done.stdout
    assert "next: check host and port" in done.stdout + done.stderr


def test_a_port_that_is_taken_or_none(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "quadloom-data"):
        pass
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = quadloom("serve", "--port", port, cwd=tmp_path)
        complained(done, 2, port, "another program", "--port")
        assert "Open" not in done.stderr, "no address is printed that does not work"
        refused = quadloom("-w", "new", "serve", "--crawl", "--port", port, "https://example.org/", cwd=tmp_path)
        complained(refused, 2, "another program")
        assert not (tmp_path / "new").exists(), "no crawl was begun"
    complained(quadloom("serve", "--port", "99999", cwd=tmp_path), 3, "web.port", "65535")


def test_an_unknown_command_and_an_unknown_flag(tmp_path: Path) -> None:
    complained(quadloom("-w", "somewhere", "crawll", "x", cwd=tmp_path), 2, "'crawll'", "`quadloom crawl`")
    complained(quadloom("crawl", "--max-page", "3", cwd=tmp_path), 2, "--max-page")


def test_a_damaged_config(tmp_path: Path) -> None:
    (tmp_path / "quadloom.toml").write_text("[crawl\ncontact = 1", encoding="utf-8")
    complained(quadloom("config", "show", cwd=tmp_path), 3, "quadloom.toml")


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "quadloom.toml").write_text("[politeness]\ndelya = 2.0\n", encoding="utf-8")
    complained(quadloom("config", "show", cwd=tmp_path), 3, "politeness.delay")


def test_a_bad_value_names_its_origin(tmp_path: Path) -> None:
    complained(
        quadloom("config", "show", cwd=tmp_path, QUADLOOM_CRAWL__MAX_PAGES="many"), 3, "QUADLOOM_CRAWL__MAX_PAGES"
    )


def test_sites_and_services_are_shown_with_the_settings(tmp_path: Path) -> None:
    text = '[[site]]\nmatch = "*.a.example"\ndelay = 5.0\n[[service]]\nurl = "http://127.0.0.1:9/"\nkinds = ["pdf"]\n'
    (tmp_path / "quadloom.toml").write_text(text, encoding="utf-8")
    shown = quadloom("config", "show", cwd=tmp_path).stdout
    assert "site[0]\tmatch = '*.a.example'  delay = 5.0\n" in shown
    (service,) = [line for line in shown.splitlines() if line.startswith("service[0]\t")]
    assert "url = 'http://127.0.0.1:9/'" in service and "kinds = ['pdf']" in service
    tree = json.loads(quadloom("config", "show", "--json", cwd=tmp_path).stdout)
    assert tree["service"]["value"][0]["kinds"] == ["pdf"]
    assert tree["site"]["value"][0]["delay"] == 5.0


def test_a_value_that_no_crawl_could_work_with(tmp_path: Path) -> None:
    done = quadloom("crawl", cwd=tmp_path, QUADLOOM_FRESHNESS__MIN_INTERVAL="soon")
    complained(done, 3, "freshness.min_interval", "QUADLOOM_FRESHNESS__MIN_INTERVAL", "90d")
    complained(quadloom("crawl", cwd=tmp_path, QUADLOOM_CRAWL__IN_FLIGHT="0"), 3, "crawl.in_flight", ">= 1")


def test_a_list_of_urls_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_bytes(b"https://example.org/\n\xff\xfe\x00")
    complained(quadloom("crawl", "--seeds", "seeds", "--contact", "a@b.example", cwd=tmp_path), 2, "UTF-8")


def test_an_unwritable_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    done = quadloom("-w", str(file), "crawl", "https://example.org/", "--contact", "a@b.example", cwd=tmp_path)
    complained(done, 2, "is a file")
    done = quadloom("-w", "/proc/warehouse", "crawl", "https://example.org/", "--contact", "a@b.example", cwd=tmp_path)
    complained(done, 6, "cannot write")


def test_a_locked_warehouse(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "w"):
        done = in_own_process("-w", "w", "crawl", "https://example.org/", "--contact", "a@b.example", cwd=tmp_path)
        complained(done, 7, "in use by process")


def test_no_warehouse_to_read(tmp_path: Path) -> None:
    complained(quadloom("-w", "nothing", "status", cwd=tmp_path), 6, "no warehouse")


def test_nobody_to_pause(tmp_path: Path) -> None:
    complained(quadloom("-w", "nothing", "pause", cwd=tmp_path), 2, "no crawl is running")


@pytest.mark.parametrize(
    ("quads", "word"),
    [("virtuoso://x/", "oxigraph:"), ("sparql+http://x/", "guard.allow")],
    ids=["unknown", "insecure"],
)
def test_a_backend_that_is_refused(tmp_path: Path, quads: str, word: str) -> None:
    words = ("-w", "w", "crawl", "https://example.org/", "--contact", "a@b.example")
    complained(quadloom(*words, cwd=tmp_path, QUADLOOM_STORES__QUADS=quads), 3, "stores.quads", word)


def test_config_show_tells_origins(tmp_path: Path) -> None:
    (tmp_path / "quadloom.toml").write_text("[crawl]\nmax_pages = 5\n[politeness]\ndelay = 3.0\n", encoding="utf-8")
    done = quadloom("config", "show", "--origin", "--json", cwd=tmp_path, QUADLOOM_POLITENESS__DELAY="4")
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["crawl.max_pages"]["value"] == 5
    assert values["crawl.max_pages"]["origin"].endswith("quadloom.toml")
    assert values["politeness.delay"]["value"] == 4.0
    assert values["politeness.delay"]["origin"] == "environment QUADLOOM_POLITENESS__DELAY"
    assert values["limits.redirects"]["origin"] == "default"


def test_init_writes_a_file_that_loads(tmp_path: Path) -> None:
    assert quadloom("init", cwd=tmp_path).returncode == 0
    assert quadloom("config", "show", cwd=tmp_path).returncode == 0
    complained(quadloom("init", cwd=tmp_path), 2, "exists")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to mount a small tmpfs")
def test_a_full_disk_ends_the_crawl_and_loses_nothing(tmp_path: Path) -> None:
    from faults.crawling import command, finish, write_config
    from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        web = FakeWeb(WebSpec(seed=5, pages=600, hosts=6, scale=1.0, traps=False, slow_seconds=0.0, crawl_delay=0.0))
        with serve_in_process(web, logging=False) as serving:
            config = write_config(tmp_path, serving)
            warehouse = disk / "w"
            arguments = command(warehouse, config, "crawl", *serving.web.seeds)
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=200, check=False)
            complained(done, 6)
            assert subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=False).returncode == 0
            finish(warehouse, config, "crawl", "--json")
            assert finish(warehouse, config, "verify", "--json")["ok"]
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)  # a child of the crawl may still be ending


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    config = tmp_path / "quadloom.toml"
    config.write_text('[stores]\nquads = "sparql+http://127.0.0.1:1/"\n')
    done = quadloom("crawl", "https://example.org/", "--contact", "a@b.example", cwd=tmp_path)
    complained(done, 6, "127.0.0.1", "stores.quads")


def test_json_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that answers does so in JSON when asked: one object, or one a line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with Warehouse.open(tmp_path / "quadloom-data") as warehouse:
        warehouse.requests.add_seeds(["https://example.org/"])
    dump = tmp_path / "dump.nt"
    dump.write_text('<https://e.example/a> <http://schema.org/name> "Name" .\n')
    page = tmp_path / "page.html"
    page.write_text("<title>t</title>")
    commands = [
        "init other.toml", "config show", "check", "seeds list", "seeds add https://example.org/more", "scope show",
        f"import {dump} --graph https://e.example/a", "status", "sites", "stats", "search name", "verify", "rebuild",
        "show https://e.example/a", "show page https://e.example/a", f"inspect {page}", "export out.nq",
        "why https://example.org/", "refresh https://example.org/",
    ]  # fmt: skip
    for command in commands:
        code = run([*command.split(), "--json"])
        said = capsys.readouterr()
        assert code in ((0, 1) if command == "check" else (0,)), (command, said.err)
        lines = said.out.splitlines()
        assert lines, command
        for line in lines:
            json.loads(line)


def test_small_mistakes_get_the_right_hint(tmp_path: Path) -> None:
    complained(quadloom("config", "set", cwd=tmp_path), 2, "no command 'set'", "quadloom config --help")
    (tmp_path / "mine").mkdir()
    complained(quadloom("-w", "mine", "demo", cwd=tmp_path), 2, "mine exists", "--keep")


def test_the_demo_honours_the_name_of_a_warehouse(tmp_path: Path) -> None:
    done = quadloom("-w", "other", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "quadloom -w other serve" in done.stdout
    audited = json.loads(quadloom("-w", "other", "audit", "--json", cwd=tmp_path).stdout)
    total = sum(site["errors"] + site["warnings"] + site["remarks"] for site in audited["sites"])
    assert f"{total} findings" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("url", "allow", "words"),
    [
        ("http://127.0.0.1:9/", '["127.0.0.0/8"]', ("failed: connect:", "check host and port")),
        ("http://127.0.0.1:9/", "[]", ("denied: guard:", "allow = [", "[guard]")),
        ("http://no-such-host.invalid/", "[]", ("dns:", "spelling of the host")),
    ],
    ids=["refused", "guard", "dns"],
)
def test_a_crawl_that_reads_nothing_says_why(tmp_path: Path, url: str, allow: str, words: tuple[str, ...]) -> None:
    (tmp_path / "quadloom.toml").write_text(f"[guard]\nallow = {allow}\n", encoding="utf-8")
    done = quadloom("crawl", url, "--max-pages", "1", "--contact", "a@b.example", cwd=tmp_path)
    complained(done, 1, "no page was read", url, *words)
    assert "quadloom refresh" not in done.stderr
