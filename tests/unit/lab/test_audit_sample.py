"""The findings of real sites that a reader judged, and how they are drawn."""

from __future__ import annotations

from quadloom.asking.audit.report import PageFindings
from quadloom.model.finding import Finding
from quadloom.model.outcome import PageRow
from quadloom_lab.audit.sample import drawn, shares, verdicts


def test_what_the_audit_says_of_real_sites_is_true_and_mostly_useful() -> None:
    given = verdicts()
    assert len(given) == 100 and len({one.seed for one in given}) == 1
    assert all(one.is_true in ("yes", "no") and one.is_useful in ("yes", "no") and one.why for one in given)
    assert all(len(one.quoted) <= 60 for one in given), "a quotation, not a page"
    right, useful = shares(given)
    assert right >= 0.97 and useful >= 0.85


def test_a_seed_draws_the_same_findings_whatever_the_order_of_the_pages() -> None:
    pages = [
        PageFindings(
            PageRow(fingerprint=number, key=str(number), href=f"https://a.example/{number}", host="a.example"),
            (Finding("bad-date", "x", path="a"), Finding("bad-price", "y", path="b")),
        )
        for number in range(50)
    ]
    assert drawn(pages, "seed", 20) == drawn(reversed(pages), "seed", 20) != drawn(pages, "other", 20)
    assert len(drawn(pages, "seed", 1000)) == 100
