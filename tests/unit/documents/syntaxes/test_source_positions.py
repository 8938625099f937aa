"""Line and column of blocks in the source."""

from __future__ import annotations

from quadloom.documents.syntaxes.registry import Positions

SOURCE = (
    "<title>é</title>\r\n<script>var a = '<div>'</script>\n"
    "é<SCRIPT type='application/ld+json' data-x='>'>{}</SCRIPT>\r<script type=\"application/ld+json\">\n[]</script>"
).encode()


def test_offsets_become_lines_and_columns() -> None:
    positions = Positions(SOURCE)
    assert positions.at(0) == (1, 1)
    assert positions.at(SOURCE.index(b"<script>")) == (2, 1)
    assert positions.at(SOURCE.index(b"<SCRIPT")) == (3, 2)  # columns count characters, not bytes


def test_scripts_of_a_type_in_document_order() -> None:
    positions = Positions(SOURCE)
    first, second = positions.scripts("application/ld+json")
    assert SOURCE[first : first + 2] == b"{}"
    assert SOURCE[second : second + 3] == b"\n[]"
    assert positions.at(second)[0] == 4


def test_a_place_inside_a_block_is_a_place_in_the_page() -> None:
    positions = Positions(SOURCE)
    first, second = positions.scripts("application/ld+json")
    line, column = positions.at(first)
    assert positions.inside(first, 1, 2) == (line, column + 1)
    assert positions.inside(second, 2, 1) == (5, 1)
