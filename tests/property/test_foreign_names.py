"""Foreign names in a text are rewritten as if each line had been rewritten as a whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from native_parts import native_part
from quadloom.documents.words import scripts
from quadloom.documents.words.scripts import splittable, splittable_in_python

WORDS = st.sampled_from(
    [
        "plain", "words", "café", "Straße", "—", "naïve", "東京", "東", "京都東京", "Αθήνα", "ή", "Москва", "ёлка",
        "قَلْب", "أمل", "ـ", "१२", "क़लम", "हिन्दी", "กุ้งสด", "ง", "ភាសា", "e\u0301", "ﬁ", "a\u200db", "\u2e80東",
        "👍\u200d👍", "é東é", "12東京34", "שָׁלוֹם", "한국", "ｶﾅ", "ß\xad",
    ]
)  # fmt: skip
LINES = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=5)


@given(LINES)
def test_a_name_is_rewritten_as_its_line_would_be(lines: list[str]) -> None:
    text = "\n".join([*lines, "and many plain words of the text around them " * 12]).replace("\xad", "")
    leads = scripts.special_bytes(text)
    whole = "\n".join(scripts._rewritten_line(line) for line in text.split("\n")) if leads else text
    assert splittable(text) == (whole if len(leads) * 10 <= len(text) else scripts._rewritten(text, leads))


@given(LINES, st.text(max_size=30))
def test_both_implementations_rewrite_alike(lines: list[str], anything: str) -> None:
    for text in ("\n".join([*lines, anything]), "\n".join([*lines, anything, "and plain words around them " * 30])):
        found = splittable(text)
        assert found == splittable_in_python(text)
        assert (found is text) == (found == text)


def test_the_native_part_is_in_use() -> None:
    texts = native_part("texts")
    assert vars(scripts)["_native"] is texts.with_runs_rewritten
    text = "plain words " * 20 + "Москва, café"
    assert texts.with_runs_rewritten(text, 10, str.upper) == ("plain words " * 20 + "МОСКВА, café").encode()
    assert texts.with_runs_rewritten(text, 10, str) is text
    assert texts.with_runs_rewritten("Москва", 10, str.upper) is None  # not sparse
    assert texts.with_runs_rewritten(text + "\xad", 10, str.upper) is None
