"""`quadloom check` tells of plug-ins and services that a crawl would only meet on its pages."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from quadloom.cli.main import run


def checked(folder: Path, config: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, object]]]:
    path = folder / "quadloom.toml"
    path.write_text(config, encoding="utf-8")
    code = run(["--json", "--config", str(path), "-w", str(folder / "warehouse"), "check"])
    return code, {row["what"]: row for row in json.loads(capsys.readouterr().out)}


def test_a_broken_plugin_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = tmp_path / "broken_plugin-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[quadloom.syntaxes]\npapyri = a_module_that_is_not_there:Reader\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    code, rows = checked(tmp_path, '[crawl]\ncontact = "a@b.example"\n', capsys)
    assert code == 1
    row = rows["plug-in papyri"]
    assert not row["ok"]
    assert "a_module_that_is_not_there" in str(row["detail"])
    assert "uninstall" in str(row["cure"])


def test_stylesheets_are_compiled_and_those_that_never_run_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sheet(name: str, header: str, content: str = "") -> None:
        start = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
        (folder / name).write_text(f"{start}{header}{content}</xsl:stylesheet>", encoding="utf-8")

    folder = tmp_path / "sheets"
    folder.mkdir()
    sheet("good.xsl", '<!-- quadloom: root="recipe" -->')
    sheet("image.xsl", '<!-- quadloom: kind="image" -->')
    sheet("odd.xsl", '<!-- quadloom: kind="recipes" -->')
    sheet("silent.xsl", "")
    sheet("broken.xsl", '<!-- quadloom: kind="xml" -->', '<xsl:template match="]"/>')
    code, rows = checked(tmp_path, f'[transform]\nstylesheets = "{folder}"\n', capsys)
    assert code == 1
    details = {name: str(rows[f"stylesheet {name}.xsl"]["detail"]) for name in ("image", "odd", "silent", "broken")}
    assert rows["stylesheet good.xsl"]["ok"]
    assert not any(rows[f"stylesheet {name}.xsl"]["ok"] for name in details)
    assert "'image' are not read by stylesheets" in details["image"]
    assert "'recipes' do not exist" in details["odd"]
    assert "never runs" in details["silent"]
    assert "does not compile" in details["broken"]


def test_services_are_knocked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        there, gone = listening.getsockname()[1], closed.getsockname()[1]
        closed.close()
        config = f'[[service]]\nurl = "http://127.0.0.1:{there}/ http://127.0.0.1:{gone}/"\n'
        code, rows = checked(tmp_path, config, capsys)
    assert code == 1
    assert rows[f"service http://127.0.0.1:{there}/"]["ok"]
    assert not rows[f"service http://127.0.0.1:{gone}/"]["ok"]


def test_a_command_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = '[[service]]\ncommand = ["cat"]\n[[service]]\ncommand = ["no-such-program"]\n'
    code, rows = checked(tmp_path, config, capsys)
    assert code == 1
    assert rows["command cat"]["ok"]
    assert not rows["command no-such-program"]["ok"]


def test_servers_of_stores_are_knocked_at_before_there_is_a_warehouse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        there, gone = listening.getsockname()[1], closed.getsockname()[1]
        closed.close()
        stores = f'quads = "sparql+http://me:s3cret@127.0.0.1:{there}/data"\narchive = "s3://bucket"\n'
        code, rows = checked(tmp_path, f'[stores]\n{stores}archive_endpoint = "http://127.0.0.1:{gone}"\n', capsys)
    assert code == 1
    assert rows["stores.quads"]["ok"]
    assert "s3cret" not in str(rows["stores.quads"]["detail"])
    assert not rows["stores.archive_endpoint"]["ok"]
