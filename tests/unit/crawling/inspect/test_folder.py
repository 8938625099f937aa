"""The files of a built site are audited as the site that they will be, and compared with an earlier audit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quadloom.asking.audit.baseline import BaselineWriter, read_baseline
from quadloom.asking.audit.formats import GravestFindings, sarif
from quadloom.asking.audit.markdown import markdown
from quadloom.asking.audit.report import AuditReport, audit
from quadloom.crawling.inspect.folder import FolderAudit, audit_folder
from quadloom.errors import NothingFound, UsageError
from quadloom.settings import Settings

PAGE = """<!doctype html><html lang=en><title>{name}</title><h1>{name}</h1>
{links}
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Offer",
"price": "{price}", "priceCurrency": "EUR"}}</script>"""


def site(folder: Path, price: str = "5.00", links: str = "") -> Path:
    (folder / "blog").mkdir(parents=True, exist_ok=True)
    home = '<link rel="canonical" href="https://shop.example/">' + links
    (folder / "index.html").write_text(PAGE.format(name="Home", links=home, price=price), encoding="utf-8")
    for name in ("index", "story"):
        text = PAGE.format(name=name, links='<a href="/">home</a>', price="5.00")
        (folder / "blog" / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> FolderAudit:
    return audit_folder(folder, Settings())


def test_addresses_are_those_of_a_static_host(tmp_path: Path) -> None:
    right = "".join(f'<a href="{href}">x</a>' for href in ("/blog/", "blog", "blog/story", "/blog/story.html", "/#top"))
    found = read(site(tmp_path, links=right + '<a href="https://other.example/x">y</a>'))
    assert set(found.files) == {f"https://shop.example/{path}" for path in ("", "blog/", "blog/story.html")}
    assert [one for page in found.pages for one in page.findings if one.severity != "info"] == []


def test_links_and_images_without_a_file_are_found_on_their_line(tmp_path: Path) -> None:
    found = read(site(tmp_path, links='\n<a href="/blog/lost">x</a>\n<link rel="alternate" hreflang="de" href="/de/">'))
    (page,) = [page for page in found.pages if page.findings]
    assert {(one.code, one.found) for one in page.findings} == {
        ("broken-link", "https://shop.example/blog/lost"),
        ("broken-link", "https://shop.example/de/"),
        ("missing-hreflang", "https://shop.example/de/"),
    }


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingFound):
        read(tmp_path)


def compared(folder: Path, baseline: Path, now: float = 2e9) -> tuple[AuditReport, GravestFindings]:
    gravest = GravestFindings()
    pages = read_baseline(baseline).compare(read(folder).pages, now)
    return audit(gravest.through(pages), since=now), gravest


def test_new_old_and_fixed_since_a_baseline(tmp_path: Path) -> None:
    folder, baseline = site(tmp_path / "public", price="5 €"), tmp_path / "baseline.json"
    writer = BaselineWriter()
    audit(writer.through(read(folder).pages))
    writer.write(baseline, 1e9)

    report, _ = compared(folder, baseline)
    assert [(one.new, one.still, one.fixed) for one in report.sites] == [(0, 1, 0)]
    site(folder, price="6 €", links='<a href="/lost">x</a>')  # another value, the same mistake
    report, gravest = compared(folder, baseline)
    assert [(one.code, one.new) for one in report.groups] == [("bad-price", 0), ("broken-link", 1)]
    states = {one["ruleId"]: one["baselineState"] for one in json.loads(sarif(gravest, 2e9))["runs"][0]["results"]}
    assert states == {"bad-price": "unchanged", "broken-link": "new"}
    site(folder)
    report, _ = compared(folder, baseline)
    assert [(one.new, one.still, one.fixed) for one in report.sites] == [(0, 0, 1)]
    assert [one.code for one in report.improved] == ["bad-price"]


def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be read"):
        read_baseline(tmp_path / "x")


def test_a_comment_holds_nothing_that_acts(tmp_path: Path) -> None:
    folder = site(tmp_path, price="<img src=x> | @all [x](https://evil.example) `</td>`")
    text = markdown(audit(read(folder).pages))
    rows = [line for line in text.splitlines() if line.startswith("| error")]
    assert len(rows) == 1 and "price is not a plain number" in rows[0]
    assert not re.search(r"(?<!\\)[<`@]|https://", rows[0])
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 6
