"""Dumps as pages: what a stranger's dump claims of a page is taken only as far as it makes sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.maintenance.importing.imported_pages import read_rdf
from quadloom.model.finding import Finding

PAGE = "http://a.example/"
NOW = 1.7e9


@pytest.mark.parametrize(
    ("status", "when", "expected"),
    [
        ("203", "2020-01-01T00:00:00Z", (203, 1577836800.0)),
        ("many", "some day", (200, NOW)),
        ("99999999999999999999999", "0001-01-01T00:00:00+14:00", (200, NOW)),
        ("٢٠٠", "", (200, NOW)),
        ("200", "9999-12-31T23:59:59Z", (200, NOW)),
    ],
)
def test_claims_that_make_no_sense_are_left_out(
    tmp_path: Path, status: str, when: str, expected: tuple[int, float]
) -> None:
    about = "<urn:quadloom:pages> .\n"
    (tmp_path / "x.nq").write_text(
        f'<{PAGE}> <http://a.example/p> "x" <{PAGE}> .\n'
        f'<{PAGE}> <urn:quadloom:status> "{status}" {about}'
        f'<{PAGE}> <http://www.w3.org/ns/prov#generatedAtTime> "{when}" {about}',
        encoding="utf-8",
    )
    (found,) = read_rdf(tmp_path / "x.nq", "nq", "", default_graph="", now=NOW, report=lambda _finding: None)
    assert (found.page.status, found.page.fetched_at) == expected


def test_statements_without_a_graph_are_reported_and_not_lost_in_silence(tmp_path: Path) -> None:
    (tmp_path / "big.nt").write_text('<http://a.example/s> <http://a.example/p> "x" .\n')
    found: list[Finding] = []
    assert not list(read_rdf(tmp_path / "big.nt", "nt", "", default_graph="", now=NOW, report=found.append))
    assert "1 statements name no graph" in found[0].message and "--graph URL" in found[0].message
    named = read_rdf(tmp_path / "big.nt", "nt", "", default_graph="http://a.example/", now=NOW, report=found.append)
    assert len(list(named)) == 1
    assert len(found) == 1
