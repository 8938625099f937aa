"""Words are compared as the index has them, and asked as pages write them."""

from __future__ import annotations

import pytest

from quadloom.documents.words.written_words import stop_words, words_of, written_words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ΛΟΓΟΣ", "λόγος"),
        ("λόγοσ", "λόγος"),
        ("STRASSE", "Straße"),
        ("CAFÉ", "cafe"),
        ("Ёж", "еж"),
        ("İSTANBUL", "istanbul"),
        ("ışık", "ISIK"),
        ("ＷＩＤＥ", "wide"),
        ("أحمد", "احمد"),
        ("מלך", "מלכ"),
        ("e\u0301tude", "étude"),
    ],
)
def test_spellings_of_one_word_are_one_word(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)
    assert len(words_of(one)) == 1


def test_numbers_and_single_letters_are_no_words_and_scripts_without_blanks_are_pairs() -> None:
    assert words_of("A 12 of snake_case, x") == ["of", "snake", "case"]
    assert words_of("日本語") == ["日本", "本語"]
    assert words_of("猫") == ["猫"]


def test_written_words_are_those_of_the_text() -> None:
    text = "Ο ΛΟΓΟΣ και ο λόγος: Straße, हिन्दी भाषा, 日本語"
    assert [word for word, _ in written_words(text)] == words_of(text)
    written = [form for _, form in written_words(text)]
    assert written[:4] == ["λογος", "και", "λόγος", "straße"]
    assert written[4:] == ["हिन्दी", "भाषा", "日本", "本語"]


def test_stop_words_have_the_same_form() -> None:
    assert "fur" in stop_words("de")
    assert "für" not in stop_words("de")
