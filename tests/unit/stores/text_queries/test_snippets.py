from __future__ import annotations

from quadloom.stores.protocols.text import Highlights
from quadloom.stores.text_queries.snippets import offsets, snippet


def test_a_sentence_explains_more_than_names_of_properties() -> None:
    rows = "\n".join(f"keeper {name}" for name in ("name", "born", "author", "isbn", "place"))
    text = f"{rows}\n{'Storms are frequent here. ' * 20}\nThe keeper of the distant lighthouse rows home in winter."
    shown = snippet(text, Highlights(words=frozenset(("keeper", "lighthouse"))))
    assert offsets(shown)[0].startswith("… The keeper of the distant lighthouse rows home")


def test_offsets_are_places_in_the_plain_text() -> None:
    text, marks = offsets(snippet("Jazz in the café, and more jazz.", Highlights(words=frozenset(("jazz", "cafe")))))
    assert text == "Jazz in the café, and more jazz."
    assert [text[begin:end] for begin, end in marks] == ["Jazz", "café", "jazz"]
    assert offsets("nothing marked") == ("nothing marked", ())
