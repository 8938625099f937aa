"""What an outcome means, and how a page's graph is called."""

from __future__ import annotations

from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow


def test_a_page_was_read_unless_it_was_gone_denied_or_failed() -> None:
    assert set(Outcome) - READ_OUTCOMES == {Outcome.GONE, Outcome.DENIED, Outcome.FAILED}


def test_a_graph_is_named_after_the_url_that_answered() -> None:
    row = PageRow(fingerprint=1, key="https://a.example/", href="https://a.example/", host="a.example")
    assert row.graph == "https://a.example/"
    moved = PageRow(fingerprint=1, key="k", href="https://a.example/", host="a.example", final_url="https://b.example/")
    assert moved.graph == "https://b.example/"
