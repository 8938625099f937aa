"""Maps: coasts where they are built in, points counted and named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quadloom.web.view import charts
from quadloom.web.view.charts import Mark, world

_BUILT = Path(charts.__file__).parents[1] / "static" / "vendor" / "manifest.json"
_GHENT, _LYON = (3.72, 51.05), (4.84, 45.76)


def _marks(place: tuple[float, float], count: int, name: str) -> list[Mark]:
    return [Mark(f"{name} {number}", *place, f"/entity?iri={name}{number}") for number in range(count)]


def test_points_at_one_place_are_one_with_their_number() -> None:
    drawn = world([*_marks(_GHENT, 12, "Concert"), *_marks(_LYON, 1, "Fair")], "Places")
    assert drawn.count("<circle") == 2
    assert re.search(r'class="many"[^>]*>12</text>', drawn)
    assert "Concert 0, Concert 1" in drawn and "and 4 more" in drawn, "the rest is counted"
    assert '<a href="/entity?iri=Fair0">' in drawn and ">Fair 0</text>" in drawn


def test_many_points_have_no_names_beside_them() -> None:
    drawn = world([Mark(f"Town {n}", n * 10.0 - 160, (n % 9) * 15 - 60.0) for n in range(30)], "Places")
    assert drawn.count("<circle") == 30 and 'class="name"' not in drawn and "<title>Town 7</title>" in drawn


def test_a_label_runs_nothing() -> None:
    assert "<script" not in world([Mark("<script>x</script>", *_GHENT)], "Places")


@pytest.mark.skipif(not _BUILT.is_file() or "land.json" not in _BUILT.read_text(), reason="needs `make web`")
def test_coasts_are_those_of_the_part_that_is_shown() -> None:
    drawn = world(_marks(_GHENT, 1, "Concert"), "Places")
    land = re.search(r'class="land"[^>]* d="([^"]+)"', drawn)
    assert land is not None and 500 < len(land[1]) < 60_000
    whole = world([Mark("a", -170.0, -60.0), Mark("b", 170.0, 70.0)], "Places")
    assert len(whole) < 200_000, "a page with the whole world stays small"
