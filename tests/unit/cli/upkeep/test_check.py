"""`quadloom check` tells of plug-ins and services that a crawl would only meet on its pages."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from quadloom.cli.main import run
from quadloom.errors import StoreError
from quadloom.stores.archive.s3_bucket import S3Address, S3Bucket
from quadloom.warehouse import Warehouse
from servers import S3_ENVIRONMENT, new_bucket, shared_sparql_server


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


def test_a_syntax_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = checked(tmp_path, '[transform]\nsyntaxes = ["jsonld", "rdf-xml"]\n', capsys)
    assert code == 1
    assert "'rdf-xml'" in str(rows["syntaxes"]["detail"])
    assert "did you mean rdfxml?" in str(rows["syntaxes"]["cure"])


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


def test_memory_that_is_too_little_for_any_query_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Warehouse.open(tmp_path / "warehouse"):
        pass
    _, rows = checked(tmp_path, "", capsys)
    assert rows["queries"]["ok"]
    code, rows = checked(tmp_path, f"[limits]\nquery_bytes = {200 << 20}\n", capsys)
    assert code == 1 and not rows["queries"]["ok"]
    assert "limits.query_bytes to at least" in str(rows["queries"]["cure"])


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


def test_servers_of_stores_are_tried_before_there_is_a_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        gone = closed.getsockname()[1]
    stores = f'quads = "sparql+http://me:s3cret@127.0.0.1:{gone}/data"\narchive = "s3://bucket"\n'
    code, rows = checked(tmp_path, f'[stores]\n{stores}archive_endpoint = "http://127.0.0.1:{gone}"\n', capsys)
    assert code == 1
    assert not rows["stores.quads"]["ok"] and not rows["stores.archive"]["ok"]
    assert "s3cret" not in json.dumps(rows), "passwords are not shown"
    assert rows["stores.archive"]["cure"]
    assert "none at" in str(rows["warehouse"]["detail"])


class Answering(BaseHTTPRequestHandler):
    """A server that is not what an archive or a quad store needs: no ranges, no updates."""

    stored: ClassVar[dict[str, bytes]] = {}

    def do_PUT(self) -> None:
        self.stored[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"")

    def do_GET(self) -> None:
        self._answer(200 if self.path in self.stored else 404, self.stored.get(self.path, b""))

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        self.stored.pop(self.path, None)
        self._answer(204, b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/update":
            self._answer(404, b"no updates here")
        else:
            self._answer(200, b'{"head": {}, "boolean": true}')

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/sparql-results+json")
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Tue, 17 Nov 2026 10:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def poor_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def bucket_config(address: S3Address) -> str:
    return (
        f'[stores]\narchive = "s3://{address.bucket}/{address.prefix}"\narchive_endpoint = "{address.endpoint}"\n'
        'archive_region = "us-east-1"\n'
    )


def test_a_bucket_is_written_read_listed_and_emptied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = new_bucket()
    _, rows = checked(tmp_path, bucket_config(address), capsys)
    assert rows["stores.archive"]["ok"], rows["stores.archive"]
    assert S3Bucket(address).files() == {}, "nothing is left behind"
    absent = msgspec.structs.replace(address, bucket="there-is-none")
    code, rows = checked(tmp_path, bucket_config(absent), capsys)
    row = rows["stores.archive"]
    assert code == 1 and not row["ok"]
    assert str(row["detail"]).endswith("there is no bucket there-is-none") and "create it" in str(row["cure"])


def test_a_server_without_ranges_is_refused(
    tmp_path: Path, poor_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    config = bucket_config(S3Address(bucket="b", prefix="p", endpoint=poor_server))
    _, rows = checked(tmp_path, config, capsys)
    row = rows["stores.archive"]
    assert not row["ok"] and "ignores ranges" in str(row["detail"]) and "206" in str(row["cure"])


@pytest.mark.parametrize(("status", "refused"), [(403, "do_PUT"), (401, "do_PUT"), (403, "do_GET")])
def test_missing_rights_are_named(
    tmp_path: Path,
    poor_server: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    refused: str,
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def refuse(self: Answering) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(status, b"<Error><Code>AccessDenied</Code></Error>")

    monkeypatch.setattr(Answering, refused, refuse)
    _, rows = checked(tmp_path, bucket_config(S3Address(bucket="b", prefix="p", endpoint=poor_server)), capsys)
    row = rows["stores.archive"]
    right = "s3:PutObject" if refused == "do_PUT" else "s3:GetObject"
    assert not row["ok"] and "does not allow to" in str(row["detail"]) and right in str(row["cure"])
    assert "AccessDenied" not in str(row["detail"]), "no answer of the server in full length"


def test_missing_credentials_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bucket = S3Bucket(S3Address(bucket="b", endpoint="http://127.0.0.1:9", region="us-east-1"), patient=False)
    with pytest.raises(StoreError, match="no credentials") as refusal, bucket._translated("write x"):
        raise OSError("error sending request for url (http://169.254.169.254/latest/api/token)")
    assert "AWS_ACCESS_KEY_ID" in refusal.value.hint


def test_a_sparql_server_must_take_updates(
    tmp_path: Path, poor_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, rows = checked(tmp_path, f'[stores]\nquads = "sparql+{poor_server}"\n', capsys)
    row = rows["stores.quads"]
    assert not row["ok"] and "/update answers 404" in str(row["detail"]) and "quads_update" in str(row["cure"])
    server = shared_sparql_server()
    _, rows = checked(tmp_path, f'[stores]\nquads = "sparql+{server.url}"\n', capsys)
    assert rows["stores.quads"]["ok"], rows["stores.quads"]
