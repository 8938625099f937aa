"""The report of the papers' experiments, and those of them that take no time."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from quadloom_lab.charts import Series
from quadloom_lab.papers import liu_agah, rdfa_spider, xyleme
from quadloom_lab.papers.report import Chart, Result, Scale, html, shown, write


def test_a_report_has_each_table_as_html_markdown_and_csv_and_each_figure_as_svg(tmp_path: Path) -> None:
    chart = Chart("x", "y", (Series("ours", [(0.0, 0.0), (1.0, 2.0)]),))
    result = Result(
        key="a-1", paper="A <b>", item="Table 1", title="speed", difference="None & none.", columns=("n", "s"),
        rows=(("x, y", 0.123456), ("z", 1_300_000)), chart=chart,
    )  # fmt: skip
    page = write(tmp_path, [result], "made here")
    text = page.read_text(encoding="utf-8")
    assert "A &lt;b&gt;" in text and "None &amp; none." in text and "<td>0.1235" in text and "<polyline" in text
    assert "src=" not in text, "the page loads nothing"
    assert list(csv.reader((tmp_path / "a-1.csv").open()))[1] == ["x, y", "0.123456"]
    assert "| z | 1,300,000 |" in (tmp_path / "papers.md").read_text(encoding="utf-8")
    assert (tmp_path / "a-1.svg").read_text(encoding="utf-8").startswith("<svg")


def test_results_stand_under_their_paper() -> None:
    given = {"difference": "", "columns": ("n",), "rows": ()}
    results = [
        Result(key=f"{paper}{n}", paper=paper, item="Table", title=str(n), **given) for n in (1, 2) for paper in "AB"
    ]
    text = html(results, "")
    assert [text.index(f"id={key}>") for key in ("A1", "A2", "B1", "B2")] == sorted(
        text.index(f"id={key}>") for key in ("A1", "A2", "B1", "B2")
    )


def test_figures_are_shown_with_four_digits() -> None:
    assert [shown(x) for x in (0.000123456, 12.3456, 12345.6, 7, "a")] == ["0.0001235", "12.35", "12,346", "7", "a"]


def test_figure_1_has_the_properties_that_the_paper_names() -> None:
    pages = {str(row[0]): row[2:] for row in xyleme.importance_and_usefulness().rows}
    importance, usefulness, weight, published = (
        {name: float(row[place]) for name, row in pages.items()} for place in range(4)
    )
    ordinary = [name for name in pages if name[0] in "ABH"]
    assert max(ordinary, key=importance.__getitem__) == "B" and usefulness["B"] == 0.0
    assert max(ordinary, key=usefulness.__getitem__) == "A" and weight["A"] > weight["B"]
    assert published["C"] > weight["C"], "only its publication makes it known"


def test_the_paper_s_optimum_costs_least_at_every_alpha() -> None:
    for alpha, best, *others in (row[:5] for row in xyleme.costs_by_alpha().rows):
        assert all(float(best) <= float(other) for other in others), alpha


def test_table_2_of_liu_and_agah_is_found_again() -> None:
    rows = liu_agah.sites_of_a_search().rows
    assert len(rows) == 10 and all(row[1] == row[3] for row in rows)


def test_the_sizing_of_the_rdfa_spider_is_found_again() -> None:
    assert pytest.approx(12.4, rel=0.01) == rdfa_spider._WEB * rdfa_spider._PAGE / 2**50
    assert (
        pytest.approx(70.9, rel=0.01)
        == rdfa_spider._WEB * rdfa_spider._PAGE * 8 / rdfa_spider._LINK / rdfa_spider._YEAR
    )


def test_a_trie_has_an_entry_for_each_new_character() -> None:
    assert rdfa_spider.trie_entries(["ab", "abc", "ad", "b", "ab"]) == 5
    assert rdfa_spider.trie_entries([]) == 0


def test_every_size_of_table_1_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scale, "size", lambda _self, _small, _full: 100)
    rows = xyleme.ranking_times(Scale()).rows
    assert [(row[0], row[1]) for row in rows] == [
        (2000, "in memory"), (2000, "from disk"), (4000, "in memory"), (4000, "from disk"),
    ]  # fmt: skip
    assert all(float(row[2]) >= 0.0 and row[7] for row in rows)
