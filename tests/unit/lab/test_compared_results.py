"""Results of two versions can be compared page by page."""

from __future__ import annotations

from pathlib import Path

from quadloom.model.page_result import PageResult
from quadloom.settings import Settings
from quadloom_lab.benchmarks.results import lines

PAGE = "<!doctype html><title>{title}</title><main><p>{text}</main><a href=/x>x</a>"


def test_a_line_changes_only_where_the_page_says_something_else(tmp_path: Path) -> None:
    for name in ("a.html", "folder/b.html"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(PAGE.format(title="t", text="the words of a page"))
    before = list(lines(tmp_path, Settings()))
    assert [line.split(" ")[0] for line in before] == ["a.html", "folder/b.html"]
    (tmp_path / "folder/b.html").write_text(PAGE.format(title="t", text="other words of the page"))
    after = list(lines(tmp_path, Settings()))
    assert after[0] == before[0]
    columns = zip(PageResult.__struct_fields__, before[1].split(" ")[1:], after[1].split(" ")[1:], strict=False)
    assert [name for name, old, new in columns if old != new] == ["text", "text_digest", "body_digest"]
