"""Links from and to some pages, read from edge segments; compared with the last reading of every page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadloom.planning.ranking.link_lookup import links_touching
from quadloom.planning.ranking.link_matrix import LinkMatrix

_READINGS = st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=6)), max_size=20)


def found(directory: Path, pages: list[int], most: int = 1000) -> set[tuple[int, int]]:
    links = links_touching(directory, pages, most=most)
    return set(zip(links.sources.tolist(), links.targets.tolist(), strict=True))


@given(readings=_READINGS, pages=st.lists(st.integers(0, 9), max_size=4), segment=st.sampled_from([20, 100, 10_000]))
def test_as_the_last_readings_say(
    tmp_path_factory: object, readings: list[tuple[int, list[int]]], pages: list[int], segment: int
) -> None:
    directory = tmp_path_factory.mktemp("links")  # type: ignore[attr-defined]
    matrix = LinkMatrix(directory, segment_bytes=segment)
    newest: dict[int, list[int]] = {}
    for source, targets in readings:
        matrix.append(source, [(target, "plain") for target in targets])
        newest[source] = targets
    matrix.close()
    every = {(source, target) for source, targets in newest.items() for target in targets}
    assert found(directory, pages) == {(s, t) for s, t in every if s in pages or t in pages}


def test_pictures_do_not_count_and_a_torn_record_is_ignored(tmp_path: Path) -> None:
    matrix = LinkMatrix(tmp_path)
    matrix.append(1, [(2, "plain"), (3, "image"), (4, "stylesheet"), (5, "feed")])
    matrix.close()
    with (tmp_path / "000001.edges").open("ab") as file:
        file.write(b"\x01\x02\x03")
    assert found(tmp_path, [1]) == {(1, 2), (1, 5)}


def test_only_the_newest_records_are_read_and_the_result_says_so(tmp_path: Path) -> None:
    matrix = LinkMatrix(tmp_path)
    for page in range(10):
        matrix.append(page, [(99, "plain")])
    matrix.close()
    assert not links_touching(tmp_path, [99], most=20).partial
    cut = links_touching(tmp_path, [99], most=6)
    assert cut.partial and cut.sources.tolist() == [7, 8, 9]


def test_no_links_yet(tmp_path: Path) -> None:
    links = links_touching(tmp_path / "none", [1])
    assert len(links.sources) == 0 and links.sources.dtype == np.int64
