"""What `export` says it wrote, and what `findings` tells of the pages that were read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quadloom.cli.main import run
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode, file_header

PAGES = {
    "https://a.example/broken": b'<title>one</title><script type="application/ld+json">{"@type": }</script>'
    b'<script type="application/ld+json">{,}</script>',
    "https://b.example/broken": b'<title>two</title><script type="application/ld+json">{</script>',
    "https://b.example/hidden": b"<title>three</title><meta name=robots content=noindex>",
    "https://b.example/sound": b"<title>four</title><p>words",
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pages, imported as a WARC file of any tool would be. The tests only read."""
    tmp_path = tmp_path_factory.mktemp("findings")
    file = tmp_path / "in.warc.gz"
    html = (("content-type", "text/html"),)
    records = (
        Page(url=url, final_url=url, status=200, headers=html, body=body, fetched_at=1e9, seconds=0.1)
        for url, body in PAGES.items()
    )
    file.write_bytes(file_header("in", 1e9) + b"".join(encode(record).member for record in records))
    folder = tmp_path / "warehouse"
    assert run(["-w", str(folder), "--quiet", "import", str(file)]) == 0
    return folder


def listed(warehouse: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert run(["--json", "-w", str(warehouse), "findings", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_findings_are_counted_by_code_errors_first(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(warehouse, capsys)
    assert [(row["code"], row["severity"], row["pages"], row["findings"]) for row in rows] == [
        ("jsonld-invalid", "error", 2, 3),
        ("noindex", "info", 1, 1),
    ]


def test_findings_of_a_code_are_listed_with_their_pages(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(str(row["url"]) for row in listed(warehouse, capsys, "jsonld-invalid")) == [
        "https://a.example/broken", "https://a.example/broken", "https://b.example/broken",
    ]  # fmt: skip
    assert len(listed(warehouse, capsys, "jsonld-invalid", "--limit", "2")) == 2
    assert len(listed(warehouse, capsys, "jsonld-invalid", "--site", "a.example")) == 2
    assert listed(warehouse, capsys, "noindex", "--site", "a.example") == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("findings", "nonsense-code"), "to list the codes in use: `quadloom findings`"),
        (("findings", "noindex", "jsonld-invald"), "did you mean jsonld-invalid?"),
        (("audit", "--code", "fetch-dsn"), "did you mean fetch-dns?"),
    ],
)
def test_a_code_that_no_finding_has_is_a_mistake(
    warehouse: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], hint: str
) -> None:
    """A misspelt code must not pass a check in a script."""
    assert run(["-w", str(warehouse), *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err == f"quadloom: there is no finding {arguments[-1]!r}\nhint: {hint}\n"


def test_a_code_that_no_page_has_is_no_mistake(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(warehouse, capsys, "fetch-dns", "too-deep", "bad-price") == []


def test_a_script_can_fail_on_defects_but_not_on_wishes(warehouse: Path) -> None:
    assert run(["-w", str(warehouse), "findings", "--fail-found"]) == 1
    assert run(["-w", str(warehouse), "findings", "noindex", "--fail-found"]) == 0


def test_a_page_that_wants_no_indexing_says_so(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["-w", str(warehouse), "show", "page", "https://b.example/hidden"])
    assert "finding\tnoindex\t" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "said"),
    [("out.warc.gz", "3 pages, 3 records"), ("out.nq", "3 pages, 3 quads"), ("out.void", "4 pages, 3 quads")],
)
def test_an_export_counts_what_its_format_consists_of(
    warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, said: str
) -> None:
    assert run(["-w", str(warehouse), "export", str(tmp_path / target), "--fail-empty"]) == 0
    assert said in capsys.readouterr().err
