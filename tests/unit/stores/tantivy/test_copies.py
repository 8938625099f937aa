"""One hit for one page: copies are grouped when they are indexed, whatever their order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import SearchRequest
from quadloom.stores.tantivy.index import TantivyText

TEXT = " ".join(f"quokka word{number}" for number in range(60))
REAL = TextDocument(id="http://a.example/p/real/", title="Quokka", body=TEXT, site="a.example", kind="html")


def variant(name: str, *, canonical: str = REAL.id, body: str = TEXT, title: str = "Quokka") -> TextDocument:
    id = f"http://a.example/{name}"
    return TextDocument(id=id, title=title, body=body, canonical=canonical, site="a.example", kind="html")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TantivyText]:
    index = TantivyText(tmp_path / "text")
    yield index
    index.close()


def found(index: TantivyText, text: str = "quokka") -> dict[str, tuple[str, ...]]:
    """Hits with their copies; totals and facets agree with them."""
    answer = index.search(SearchRequest(text=text, facets=True))
    assert answer.total == len(answer.hits) == sum(count for _, count in answer.facets["sites"])
    return {hit.id: hit.also_at for hit in answer}


@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
@pytest.mark.parametrize("at_once", [True, False])
def test_the_canonical_page_is_shown_whatever_comes_first(
    index: TantivyText, order: tuple[int, ...], at_once: bool
) -> None:
    pages = [REAL, variant("x.html"), variant("x?sort=price", body=TEXT + " sorted by price")]
    for number in order:
        index.put([pages[number]])
        if not at_once:
            index.commit()
    index.commit()
    assert found(index) == {REAL.id: ("http://a.example/x.html", "http://a.example/x?sort=price")}
    assert found(index, "") == found(index)
    assert sorted(index.ids()) == sorted(page.id for page in pages)


def test_pages_that_name_the_same_page_are_one_hit_without_it(index: TantivyText) -> None:
    index.put([variant("x.html"), variant("y.html")])
    index.commit()
    assert found(index) == {"http://a.example/x.html": ("http://a.example/y.html",)}


def test_a_start_page_that_every_page_names_as_canonical_hides_none(index: TantivyText) -> None:
    other = " ".join(f"numbat thing{number}" for number in range(60))
    index.put([REAL, variant("numbat", body=other, title="Numbat")])
    index.commit()
    assert set(found(index)) == {REAL.id}
    assert set(found(index, "numbat")) == {"http://a.example/numbat"}


def test_nearly_the_same_text_under_the_same_title_is_one_hit(index: TantivyText) -> None:
    index.put([REAL, variant("copy", canonical="", body=f"{TEXT} printed")])
    index.put([variant("other-title", canonical="", title="Quokka, second part")])
    index.commit()
    assert found(index) == {REAL.id: ("http://a.example/copy",), "http://a.example/other-title": ()}


def test_a_copy_is_shown_again_when_the_other_page_is_removed_or_changes(index: TantivyText) -> None:
    copy, changed = variant("x.html"), " ".join(f"numbat thing{number}" for number in range(60))
    index.put([REAL, copy])
    index.commit()
    index.remove([REAL.id])
    index.commit()
    assert found(index) == {copy.id: ()}
    index.put([REAL])
    index.commit()
    assert found(index) == {REAL.id: (copy.id,)}
    index.put([TextDocument(id=REAL.id, title="Numbat", body=changed, site="a.example")])
    index.commit()
    assert found(index) == {copy.id: ()} and set(found(index, "numbat")) == {REAL.id}


def test_copies_survive_a_restart_and_a_refresh(tmp_path: Path) -> None:
    for _ in range(3):
        index = TantivyText(tmp_path / "text")
        index.put([REAL, variant("x.html")])
        index.commit()
        assert found(index) == {REAL.id: ("http://a.example/x.html",)}
        index.close()
