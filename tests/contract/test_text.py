"""The contract of `TextIndex`."""

from __future__ import annotations

import random

import pytest
from contract_backends import Shelf

from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import SearchRequest, TextIndex

YEAR = 31_556_952.0
EVENT, PERSON = "http://schema.org/Event", "http://xmlns.com/foaf/0.1/Person"

DOCUMENTS = [
    TextDocument(
        id="http://a.example/jazz",
        title="Jazz night",
        body="A quick brown fox listens to jazz in the café. " * 3,
        literals="Blue Note Berlin",
        types=(EVENT,),
        vocabularies=("http://schema.org/",),
        site="a.example",
        host="www.a.example",
        language="en",
        kind="html",
        fetched_at=50.5 * YEAR,
    ),
    TextDocument(
        id="http://a.example/fox",
        title="The brown quick fox",
        body="Foxes, foxglove and nothing about music.",
        types=(EVENT, PERSON),
        vocabularies=("http://schema.org/", "http://xmlns.com/foaf/0.1/"),
        site="a.example",
        host="a.example",
        language="en",
        kind="html",
        fetched_at=51.5 * YEAR,
    ),
    TextDocument(
        id="http://b.example/",
        title="Straßenmusik",
        body="Über Jazz in Köln und anderswo. jazz-fest",
        site="b.example",
        host="b.example",
        language="de",
        kind="rss",
        fetched_at=52.5 * YEAR,
    ),
]


@pytest.fixture
def index(shelf: Shelf) -> TextIndex:
    shelf.text.put(DOCUMENTS)
    shelf.text.commit()
    return shelf.text


def ids(index: TextIndex, text: str = "", **values: object) -> list[str]:
    return [hit.id.removeprefix("http://") for hit in index.search(SearchRequest(text=text, **values)).hits]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jazz", {"a.example/jazz", "b.example/"}),
        ("JAZZ berlin", {"a.example/jazz"}),
        ('"quick brown"', {"a.example/jazz"}),
        ('"quick brown', {"a.example/jazz"}),
        ("jazz-fest", {"b.example/"}),
        ("foxg*", {"a.example/fox"}),
        ("fox*", {"a.example/jazz", "a.example/fox"}),
        ("title:jazz", {"a.example/jazz"}),
        ("jazz -fox", {"b.example/"}),
        ("-jazz", {"a.example/fox"}),
        ("-title:fox", {"a.example/jazz", "b.example/"}),
        ("cafe", {"a.example/jazz"}),
        ("Café", {"a.example/jazz"}),
        ("koln", {"b.example/"}),
        ("strassenmusik", {"b.example/"}),
        ("Straßenmusik", {"b.example/"}),
        ("site:b.example", {"b.example/"}),
        ("type:Event jazz", {"a.example/jazz"}),
        ("type:Person", {"a.example/fox"}),
        (f'type:"{PERSON}"', {"a.example/fox"}),
        ("kind:rss", {"b.example/"}),
        ("lang:de", {"b.example/"}),
        ("nothere", set()),
        ("nofield:jazz", set()),
    ],
)
def test_what_people_type(index: TextIndex, text: str, expected: set[str]) -> None:
    assert set(ids(index, text, exact=True)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jazz berlin", ["a.example/jazz", "b.example/"]),  # all words first, then most
        ("nights", ["a.example/jazz"]),  # another form
        ("listening", ["a.example/jazz"]),
        ("foxgl", ["a.example/fox"]),  # unfinished
        ("straßenmusk", ["b.example/"]),  # misspelt
        ("strasenmusik", ["b.example/"]),
        ("how about a berlin jazz night", ["a.example/jazz"]),  # function words need not occur
        ("nowhere", []),
        ("site:www.a.example", ["a.example/jazz", "a.example/fox"]),
        ("site:https://b.example/", ["b.example/"]),
        ("type:event jazz", ["a.example/jazz"]),
        ("lang:de-AT", ["b.example/"]),
        ("jazz after:2021-06", ["b.example/"]),
        ("jazz before:2020", ["a.example/jazz"]),
        ("after:2021 before:2021-12-31", ["a.example/fox"]),
    ],
)
def test_a_question_is_a_wish(index: TextIndex, text: str, expected: list[str]) -> None:
    found = ids(index, text)
    assert found[: len(expected)] == expected if " " in text and ":" not in text else set(found) == set(expected)


def test_a_word_is_found_at_the_end_of_a_compound(index: TextIndex) -> None:
    index.put([TextDocument(id="http://c.example/", body="Wir nähen Lederhandschuhe von Hand.", language="de")])
    index.commit()
    assert ids(index, "Handschuhe") == ids(index, "Handschuh") == ["c.example/"]


def test_what_became_of_the_words_is_told(index: TextIndex) -> None:
    answer = index.search(SearchRequest(text="jazz straßenmusk"))
    assert [(item.asked, item.used) for item in answer.corrections] == [("straßenmusk", "strassenmusik")]
    assert answer.hits[0].id == "http://b.example/" and "\x02Jazz\x03" in answer.hits[0].snippet
    exact = index.search(SearchRequest(text="jazz straßenmusk", exact=True))
    assert (exact.hits, exact.missing) == ((), ("straßenmusk",))
    assert [item.used for item in exact.offers] == ["strassenmusik"]
    answer = index.search(SearchRequest(text="jazz qqqqqq"))
    assert answer.missing == ("qqqqqq",) and answer.most_words and answer.total == 2  # those with jazz
    assert not index.search(SearchRequest(text="jazz")).most_words


def test_words_may_be_written_together_or_apart(index: TextIndex) -> None:
    lighthouse, cloud = TextDocument(id="http://c.example/", title="The lighthouse"), "http://d.example/"
    index.put(
        [lighthouse, TextDocument(id=cloud, title="A word cloud"), TextDocument(id="http://e.example/", body="words")]
    )
    index.commit()
    assert ids(index, "light house") == ["c.example/"]
    assert ids(index, '"light house"') == ids(index, "light house", exact=True) == []
    apart = index.search(SearchRequest(text="wordcloud"))
    assert [hit.id for hit in apart.hits] == [cloud]
    assert [(item.asked, item.used) for item in apart.corrections] == [("wordcloud", "word cloud")]


def test_a_question_in_a_sentence_finds_the_page_with_most_of_it(index: TextIndex) -> None:
    index.put(
        [
            TextDocument(id="http://c.example/swift", title="Swifts", body="Swifts return to the nest of last year."),
            TextDocument(id="http://c.example/nest", title="Nest", body="Birds build a nest of straw."),
        ]
    )
    index.commit()
    answer = index.search(SearchRequest(text="which birds find their nest again every year after long journeys abroad"))
    assert {hit.id for hit in answer.hits[:2]} == {"http://c.example/swift", "http://c.example/nest"}
    assert answer.most_words and answer.total == 2
    assert {"journeys", "abroad"} <= set(answer.missing)


def test_all_words_count_and_pages_with_some_follow(index: TextIndex) -> None:
    answer = index.search(SearchRequest(text="jazz berlin", facets=True))
    assert [hit.id for hit in answer.hits] == ["http://a.example/jazz", "http://b.example/"]
    assert answer.total == 1 and answer.facets["sites"] == [("a.example", 1)]


def test_what_is_required_is_never_left_out(index: TextIndex) -> None:
    assert ids(index, "+berlin jazz") == ["a.example/jazz"]
    assert ids(index, '"quick brown" anywhere') == ["a.example/jazz"]
    assert ids(index, '"brown jazz" fox') == ids(index, "+nowhere fox") == ids(index, "title:café jazz") == []


def test_pages_with_most_of_the_words_are_told_only_if_there_are_any(index: TextIndex) -> None:
    index.put([TextDocument(id="http://c.example/", title="二维码", body="生成二维码的工具", language="zh")])
    index.commit()
    answer = index.search(SearchRequest(text="二维码"))
    assert answer.total == 1 and not answer.most_words


def test_a_site_with_a_port_is_found_without_it(index: TextIndex) -> None:
    place = "127.0.0.12:8080"
    index.put([TextDocument(id=f"http://{place}/", title="Port", site=place, host=place)])
    index.commit()
    for name in ("127.0.0.12", "127.0.0.12:8080"):
        assert ids(index, sites=(name,)) == ids(index, f"host:{name}") == ["127.0.0.12:8080/"]
    assert ids(index, sites=("127.0.0.1",)) == ids(index, sites=("127.0.0.12:80",)) == []


def test_words_of_the_index_by_their_beginning(index: TextIndex) -> None:
    assert [word for word, _ in index.words("fox", 5)] == ["fox", "foxes", "foxglove"]
    assert [word for word, _ in index.words("fox", 1)] == ["fox"]
    assert index.words("zzz", 5) == []


def test_the_title_counts_most(index: TextIndex) -> None:
    assert ids(index, "fox")[0] == "a.example/fox"


def test_filters_and_dates(index: TextIndex) -> None:
    assert ids(index) == ["b.example/", "a.example/fox", "a.example/jazz"]  # newest first
    assert ids(index, types=(PERSON,)) == ["a.example/fox"]
    assert ids(index, types=(PERSON, EVENT)) == ["a.example/fox", "a.example/jazz"]
    assert ids(index, vocabularies=("http://xmlns.com/foaf/0.1/",)) == ["a.example/fox"]
    assert ids(index, "jazz", sites=("b.example",)) == ["b.example/"]
    assert ids(index, languages=("de",), kinds=("html",)) == []
    assert ids(index, since=51 * YEAR, until=52 * YEAR) == ["a.example/fox"]
    assert ids(index, limit=1, offset=1) == ["a.example/fox"]
    assert index.search(SearchRequest(limit=1)).total == 3


def test_facets_count_what_matches(index: TextIndex) -> None:
    facets = index.search(SearchRequest(text="jazz", facets=True)).facets
    assert facets["types"] == [(EVENT, 1)]
    assert sorted(facets["sites"]) == [("a.example", 1), ("b.example", 1)]
    assert sorted(facets["languages"]) == [("de", 1), ("en", 1)]
    assert sorted(facets["kinds"]) == [("html", 1), ("rss", 1)]
    assert sorted(facets["years"]) == [("2020", 1), ("2022", 1)]
    assert facets["vocabularies"] == [("http://schema.org/", 1)]


def test_hits_carry_what_a_result_page_shows(index: TextIndex) -> None:
    (hit,) = index.search(SearchRequest(text="cafe quick", exact=True)).hits
    assert (hit.title, hit.site, hit.language, hit.kind, hit.types) == (
        "Jazz night",
        "a.example",
        "en",
        "html",
        (EVENT,),
    )
    assert hit.fetched_at == 50.5 * YEAR
    assert "\x02café\x03" in hit.snippet
    assert "\x02quick\x03 brown" in hit.snippet


def test_changes_become_visible_at_commit(shelf: Shelf) -> None:
    index = shelf.text
    index.put(DOCUMENTS[:2])
    assert len(index) == 0
    index.commit()
    index.put([TextDocument(id="http://a.example/jazz", title="Something else"), DOCUMENTS[2]])
    index.put([TextDocument(id="http://a.example/jazz", title="Third version")])
    index.remove(["http://a.example/fox", "http://never.example/"])
    assert set(ids(index, "fox")) == {"a.example/fox", "a.example/jazz"}
    index.commit()
    assert ids(index, "fox") == []
    assert ids(index, "third") == ["a.example/jazz"]
    assert ids(index, "something") == []
    assert len(index) == 2
    assert sorted(index.ids()) == ["http://a.example/jazz", "http://b.example/"]


def test_reopening_keeps_commits_and_nothing_else(shelf: Shelf) -> None:
    shelf.text.put(DOCUMENTS[:1])
    shelf.text.commit()
    shelf.text.put(DOCUMENTS[1:])
    index = shelf.reopen()
    assert list(index.ids()) == ["http://a.example/jazz"]
    index.put(DOCUMENTS[1:])
    index.commit()
    assert len(index) == 3


def test_no_text_raises(index: TextIndex) -> None:
    chance = random.Random(3)
    signs = ["fox", "jazz", *'"*:-()[]{}^~\\/+><=!&|\x00é日😀_', "AND", "OR", "NOT", "TO", "title:", "types:", "id:"]
    for _ in range(300):
        text = "".join(chance.choice(signs) + chance.choice(("", " ")) for _ in range(chance.randrange(1, 12)))
        index.search(SearchRequest(text=text, facets=True))
    index.search(SearchRequest(text="x " * 100_000))
    index.search(SearchRequest(text="`+`의 기능"))
    index.search(SearchRequest(text="fox", limit=0, offset=-5))
    index.search(SearchRequest(text="fox", limit=10**9, offset=10**9))


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ("UUID を生成する方法", "生成"),
        ("如何部署网站到服务器", "部署"),
        ("서울에서 열린 회의", "서울"),
        ("วันนี้กุ้งสดราคาถูก", '"กุ้งสด"'),
        ("यह हिन्दी की पुस्तक है", "हिन्दी"),
        ("مكتبة الإسكندرية", "مكتبه"),
        ("שָׁלוֹם עֲלֵיכֶם", "שלום"),
        ("樹木", "木"),
        ("İSTANBUL Boğazı", "istanbul"),
    ],
)
def test_words_of_every_script(shelf: Shelf, document: str, question: str) -> None:
    shelf.text.put(
        [TextDocument(id="http://a.example/", body=document), TextDocument(id="http://b.example/", body="x")]
    )
    shelf.text.commit()
    assert ids(shelf.text, question) == ["a.example/"]
    assert not shelf.text.is_outdated


def test_headings_and_texts_of_images_are_found(shelf: Shelf) -> None:
    shelf.text.put([TextDocument(id="http://a.example/", headings="Okapi", images="A zebra", links="Quagga", body="x")])
    shelf.text.commit()
    for word in ("okapi", "headings:okapi", "zebra", "images:zebra", "quagga", "links:quagga"):
        assert ids(shelf.text, word) == ["a.example/"], word
    assert ids(shelf.text, "title:okapi") == []
