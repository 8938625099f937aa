"""A difference of statements as people read it."""

from __future__ import annotations

from quadloom.asking.changes.readable_changes import readable, text_changes

S = "http://schema.org/"
EVENT, GRAPH = "<https://a.example/e>", "<https://a.example/>"
BLANK = "<urn:quadloom:blank:{}>"


def line(subject: str, name: str, value: str) -> str:
    return f"{subject} <{S}{name}> {value} {GRAPH} ."


def test_a_value_that_changed_has_a_before_and_an_after() -> None:
    (change,) = readable(
        [line(EVENT, "startDate", '"2026-05-02"')],
        [line(EVENT, "startDate", '"2026-05-01"')],
        {"https://a.example/e": "Concert"}.get,  # type: ignore[arg-type]
    )
    assert str(change) == "Concert · start date: 2026-05-01 → 2026-05-02"
    assert change.iri == "https://a.example/e"


def test_what_came_and_what_went() -> None:
    new, gone = line(EVENT, "performer", '"Ada"'), line(EVENT, "sponsor", '"Bo"')
    assert [str(change) for change in readable([new, line(EVENT, "name", '"Concert"')], [gone])] == [
        "Concert · sponsor: Bo → nothing",
        "Concert · performer: now Ada",
        "Concert · name: now Concert",
    ]


def test_parts_without_names_are_values_of_their_thing() -> None:
    old, new = BLANK.format(1), BLANK.format(2)
    removed = [line(EVENT, "offers", old), line(old, "price", '"34.00"'), line(old, "priceCurrency", '"EUR"')]
    added = [line(EVENT, "offers", new), line(new, "price", '"36.00"'), line(new, "priceCurrency", '"EUR"')]
    (change,) = readable(added, removed, lambda iri: "Concert" if iri.endswith("/e") else "")
    assert str(change) == "Concert · offers: 34.00, EUR → 36.00, EUR"


def test_a_part_that_is_stored_by_now_is_shown_as_the_one_before() -> None:
    old, new = BLANK.format(1), BLANK.format(2)
    removed, added = (
        [line(EVENT, "offers", part), line(part, "price", f'"{price}"')] for part, price in ((old, 34), (new, 36))
    )
    names = {"https://a.example/e": "Concert", new.strip("<>"): "Concert › offers"}
    (change,) = readable(added, removed, lambda iri: names.get(iri, ""))
    assert str(change) == "Concert · offers: 34 → 36"


def test_the_spelling_of_a_value_is_no_change() -> None:
    removed = [line(EVENT, "startDate", '"2026-05-01T19:30:00+00:00"'), line(EVENT, "name", '"A  concert"@en')]
    added = [line(EVENT, "startDate", '"2026-05-01T19:30:00Z"'), line(EVENT, "name", '"A concert"')]
    assert readable(added, removed) == ()


def test_rows_of_a_query_stay_as_they_are() -> None:
    changes = readable(["Ghent\t3", "\ud800 broken"], ["Ghent\t2"])
    assert [str(change) for change in changes] == ["- Ghent\t2", "+ Ghent\t3", "+ \ud800 broken"]


def test_parts_in_a_circle_end() -> None:
    one, two = BLANK.format(1), BLANK.format(2)
    circle = [line(EVENT, "about", one), line(one, "about", two), line(two, "about", one)]
    assert len(readable(circle, [])) == 1


def test_sentences_that_came_and_went() -> None:
    gone, come = text_changes("Doors open at 7. Bring a coat. Free entry", "Doors open at 8. Bring a coat.\nFree entry")
    assert (gone, come) == (("Doors open at 7.",), ("Doors open at 8.",))
