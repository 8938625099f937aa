"""A folder of evidence, verified by sha256sum and openssl alone."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from quadloom.asking.evidence.bundle import MANIFEST, STAMP, stamp_from, write_bundle
from quadloom.asking.evidence.cite import cite
from quadloom.errors import FetchError, UsageError
from quadloom.settings import GuardSettings, Settings, StoreSettings
from quadloom.warehouse import Warehouse
from unit.web.web_fixture import BOOK, fill

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl") or not shutil.which("sha256sum"), reason="needs stock tools"
)
_CONFIG = """
[req]
distinguished_name = name
[name]
[tsa_cert]
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = one
[one]
serial = serial
signer_digest = sha256
digests = sha256
default_policy = 1.2.3.4
accuracy = secs:1
"""


def openssl(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *words], cwd=folder, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A time-stamp authority: its key, its certificate and what `openssl ts -reply` needs."""
    folder = tmp_path_factory.mktemp("tsa")
    (folder / "tsa.cnf").write_text(_CONFIG)
    (folder / "serial").write_text("01\n")
    made = openssl(
        folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=authority", "-config", "tsa.cnf", "-extensions", "tsa_cert",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def server(authority: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of the authority, and the faults that it shall have next."""
    faults: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            (authority / "query.tsq").write_bytes(query)
            files = ("-queryfile", "query.tsq", "-signer", "ca.pem", "-inkey", "key.pem", "-out", "reply.tsr")
            assert openssl(authority, "ts", "-reply", "-config", "tsa.cnf", *files).returncode == 0
            reply = (authority / "reply.tsr").read_bytes()
            fault = faults.pop() if faults else ""
            self.send_response(500 if fault == "status" else 200)
            self.end_headers()
            self.wfile.write(b"" if fault == "empty" else reply)

        def log_message(self, *_: object) -> None:
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_address[1]}/", faults
    found.shutdown()
    found.server_close()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "data"
    fill(path)
    return path


def settings_for(server: str, *, private: bool = True) -> Settings:
    guard = GuardSettings(allow=["127.0.0.0/8"] if private else [])
    return Settings(stores=StoreSettings(timestamp_server=server), guard=guard)


def write(warehouse: Path, folder: Path, settings: Settings) -> None:
    with Warehouse.read(warehouse) as read:
        write_bundle(folder, cite(read.stores, f"{BOOK}#it", "isbn"), read.stores.archive, stamp_from(settings))


def is_whole(folder: Path) -> bool:
    return (
        subprocess.run(["sha256sum", "--check", "--strict", MANIFEST], cwd=folder, capture_output=True).returncode == 0
    )


def is_dated(folder: Path, authority: Path) -> bool:
    words = ["-data", MANIFEST, "-in", STAMP, "-CAfile", str(authority / "ca.pem")]
    return openssl(folder, "ts", "-verify", *words).returncode == 0


def test_one_changed_byte_fails(
    warehouse: Path, tmp_path: Path, authority: Path, server: tuple[str, list[str]]
) -> None:
    folder = tmp_path / "evidence"
    write(warehouse, folder, settings_for(server[0]))
    assert is_whole(folder) and is_dated(folder, authority)
    names = {file.name for file in folder.iterdir()}
    assert names >= {
        "README.txt",
        "citation.json",
        "citation.bib",
        "statements.nq",
        "record-1.warc.gz",
        "record-2.warc.gz",
    }
    for file in folder.iterdir():
        whole = file.read_bytes()
        file.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        assert not (is_whole(folder) and is_dated(folder, authority)), file.name
        file.write_bytes(whole)
    assert is_whole(folder) and is_dated(folder, authority)


def test_records_are_what_the_server_sent(warehouse: Path, tmp_path: Path) -> None:
    write(warehouse, tmp_path / "evidence", Settings())
    unpacked = subprocess.run(["zcat", tmp_path / "evidence" / "record-1.warc.gz"], capture_output=True, check=True)
    assert unpacked.stdout.startswith(b"WARC/1.1\r\n") and b'"isbn": "978-3"' in unpacked.stdout
    assert not (tmp_path / "evidence" / STAMP).exists()
    assert (tmp_path / "evidence" / "statements.nq").read_text().count("\n") == 2


@pytest.mark.parametrize("fault", ["status", "empty"])
def test_a_failed_time_stamp_leaves_nothing(
    warehouse: Path, tmp_path: Path, server: tuple[str, list[str]], fault: str
) -> None:
    server[1].append(fault)
    with pytest.raises(FetchError):
        write(warehouse, tmp_path / "evidence", settings_for(server[0]))
    assert not (tmp_path / "evidence").exists()


def test_a_private_server_is_refused_unless_it_is_allowed(
    warehouse: Path, tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    with pytest.raises(FetchError):
        write(warehouse, tmp_path / "evidence", settings_for(server[0], private=False))


def test_a_folder_that_exists_is_left_alone(warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError):
        write(warehouse, tmp_path, Settings())
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
