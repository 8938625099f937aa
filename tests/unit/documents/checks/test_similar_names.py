"""Similar names are those that `difflib` finds."""

from __future__ import annotations

from difflib import get_close_matches

from hypothesis import example, given
from hypothesis import strategies as st

from quadloom.documents.checks.vocabulary import SimilarNames, vocabularies

NAMES = list(vocabularies(()).schema.properties)
KNOWN = SimilarNames(NAMES)
FOLDED = {name.lower(): name for name in reversed(NAMES)}


def changed(name: str, at: int, piece: str) -> str:
    return name[:at] + piece + name[at + len(piece) % 2 :]


@given(
    st.one_of(
        st.text(max_size=80),
        st.builds(changed, st.sampled_from(NAMES), st.integers(0, 30), st.sampled_from(["", "x", "ee", "É", "_", "9"])),
    )
)
@example("datePublishd")
@example("aaaaaaaaaaaaaaaa")
@example("")
def test_similar_names_are_those_of_difflib(name: str) -> None:
    wanted = name.lower()
    same = FOLDED.get(wanted) or FOLDED.get(wanted.removesuffix("s"))
    expected = [FOLDED[found] for found in get_close_matches(wanted[:60], FOLDED, n=3, cutoff=0.7)]
    assert KNOWN.find(name) == ([same] if same else expected)
