"""Words of every script: a question finds what a document says."""

from __future__ import annotations

import pytest

from quadloom.documents.words.analysis import analyse_document, analyse_phrase, analyse_query, query_tokens, tokens_of
from quadloom.documents.words.languages import language_of
from quadloom.documents.words.scripts import is_gram, readable, splittable
from quadloom.documents.words.stems import INDEXED, stemmer


def _holds(tokens: list[str], phrase: tuple[str, ...]) -> bool:
    return any(tuple(tokens[at : at + len(phrase)]) == phrase for at in range(len(tokens)))


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ("UUID を生成する方法", "生成"),
        ("比較演算子の一覧", "比較演算子"),
        ("ﾊｯｼｭ関数", "ハッシュ"),
        ("如何部署网站到服务器", "部署"),
        ("서울에서 열린 회의", "서울"),
        ("서울 날씨 예보", "서울 날씨"),
        ("วันนี้กุ้งสดราคาถูก", "กุ้งสด"),
        ("ພາສາລາວງ່າຍ", "ລາວ"),
        ("ភាសាខ្មែរពិរោះ", "ខ្មែរ"),
        ("မြန်မာစာ", "မြန်မာ"),
        ("यह हिन्दी की पुस्तक है", "हिन्दी"),
        ("ज़रूरत", "जरूरत"),
        ("தமிழ் மொழி", "தமிழ்"),
        ("قَرَأَ مُحَمَّدٌ", "محمد"),
        ("مكتبة الإسكندرية", "مكتبه الاسكندرية"),
        ("שָׁלוֹם עֲלֵיכֶם", "שלום"),
        ("Η ΕΛΛΆΔΑ είναι", "ελλαδα"),
        ("зелёная ёлка", "елка"),
        ("İSTANBUL ve Isparta", "istanbul"),
        ("istanbul boğazı", "İstanbul Boğazı"),
        ("東京とİstanbul", "istanbul"),
        ("cafe\u0301 Ｆｕｌｌ ﬁne", "Café full fine"),
        ("co\xadop\xader\xada\xadtion", "cooperation"),
        ("Straße, Łódź und Ærø", "strasse lodz und aero"),
        ("٢٠٢٦ وثيقة", "2026"),
    ],
)
def test_a_question_finds_the_document(document: str, question: str) -> None:
    assert _holds(tokens_of(document), query_tokens(question)), (tokens_of(document), query_tokens(question))


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ("ข้าว", "ข่าว"),  # rice, news: the tone is not an accent that may be left out
        ("東京 都庁", "京都"),
        ("日本、語学", "日本語"),
        ("서울 대학", "울대"),
    ],
)
def test_a_question_does_not_find_another_word(document: str, question: str) -> None:
    assert not _holds(tokens_of(document), query_tokens(question))


def test_every_character_of_a_run_begins_a_token() -> None:
    tokens = tokens_of("樹木の木")
    assert [token for token in tokens if token.startswith("木")] == ["木の", "木"]


def test_latin_text_is_left_alone() -> None:
    text = "Plain “quoted” text — naïve café"
    assert splittable(text) is text


def test_tokens_can_be_read() -> None:
    assert [readable(token) for token in tokens_of("हिन्दी ข่าว")] == ["हिन्दी", "ข่าว", "ว"]
    assert is_gram("ข")
    assert not is_gram("हिन्दी")
    assert not is_gram("word")


@pytest.mark.parametrize(
    ("language", "document", "question"),
    [
        ("en", "houses", "house"),
        ("en", "library", "libraries"),
        ("de", "Häuser", "Haus"),
        ("fi", "kirjastossa", "kirjastojen"),
        ("ru", "библиотекой", "библиотеки"),
        ("ar", "والكتاب", "كتاب"),
        ("ar", "المكتبات", "مكتبة"),
        ("hi", "किताबों", "किताबें"),
        ("he", "הספרים", "ספר"),
        ("he", "בספרייה", "הספרייה"),
        ("tr", "evlerde", "evler"),
        ("el", "βιβλιοθήκης", "βιβλιοθήκη"),
    ],
)
def test_forms_of_a_word_share_a_stem(language: str, document: str, question: str) -> None:
    (term,) = analyse_query(question, language)
    known = stemmer(language)
    assert known is not None
    assert known.stem(document) in term.stems
    if language in INDEXED:
        words = {*tokens_of(document), *analyse_document(document, language).stems.split()}
        assert words.intersection((*term.tokens, *term.stems)), (words, term)


def test_a_compound_is_found_by_its_last_part() -> None:
    endings = analyse_document("Neue Lederhandschuhe eingetroffen", "de").endings.split()
    (term,) = analyse_query("Handschuh", "de")
    assert [ending for ending in endings if ending.startswith(term.ending)] == ["huhcsdnahredel"]


def test_a_question_without_a_language_has_stems_of_the_given_ones() -> None:
    (term,) = analyse_query("Büchern", languages=("en", "de"))
    assert set(term.stems) == {"buchern", "buch"}


def test_a_long_question_has_parts() -> None:
    (term,) = analyse_query("UUIDを生成する方法")
    assert term.parts == (("uuid",), ("生成",), ("方法",))
    (term,) = analyse_query("도서관에서")
    assert term.parts == (("도서", "서관"),)


def test_a_phrase_stays_exact() -> None:
    term = analyse_phrase("state of the art")
    assert term is not None
    assert term.tokens == ("state", "of", "the", "art")
    assert term.stems == ()
    assert analyse_phrase("…") is None


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The quick brown fox is in the house, and that was it."),
        ("de", "Der Hund ist nicht auf der Straße, und das ist auch gut."),
        ("fr", "Le chat est dans la maison et les souris sont sur la table."),
        ("es", "El perro no está en la casa, pero los gatos sí que están."),
        ("fi", "Kissa on talossa, mutta koira ei ole, ja se oli myös siellä."),
        ("ja", "日本語の文章を生成する"),
        ("zh", "如何部署网站"),
        ("ko", "한국어 문장"),
        ("ru", "Это не то, что вы думаете, и как это было на самом деле."),
        ("uk", "На що це схоже, та як він був також для цього."),
        ("ar", "هذا الكتاب في المكتبة من على الطاولة"),
        ("fa", "این کتاب را در خانه است و از آن"),
        ("th", "วันนี้กุ้งสดราคาถูก"),
        ("hi", "यह हिन्दी की पुस्तक है"),
        ("he", "שלום עליכם"),
        ("", "Lorem 12 34"),
    ],
)
def test_the_language_is_guessed(language: str, text: str) -> None:
    assert language_of(text) == language


def test_what_the_page_says_counts_unless_the_script_denies_it() -> None:
    assert language_of("Das ist der Hund, und die Katze ist auch da.", "en-GB") == "en"
    assert language_of("Это не то, что вы думаете, и как это было.", "en") == "ru"
    assert language_of("漢字だけ", "zh-Hant") == "ja"
    assert language_of("漢字", "ja") == "ja"
