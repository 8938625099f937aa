"""Words that are near to a word: slips, forms, synonyms."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quadloom.errors import SettingsError
from quadloom.stores.text_queries.forms import longer_words, word_forms
from quadloom.stores.text_queries.spelling import distance, nearest, similar
from quadloom.stores.text_queries.synonyms import Synonyms


class Words(dict[str, int]):
    def starting_with(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        found = [pair for pair in self.items() if pair[0].startswith(prefix)]
        return sorted(found, key=lambda pair: -pair[1])[:limit]


WORDS = Words(
    accessibility=50, accessible=20, lighthouse=27, lighthouses=3, criteria=9, criterion=12, museum=30, музей=4
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("accessibilty", "accessibility"),
        ("lihgthouse", "lighthouse"),
        ("ligthhouse", "lighthouse"),
        ("ilghthouse", "lighthouse"),
        ("musuem", "museum"),
        ("mseum", "museum"),
        ("музэй", "музей"),
    ],
)
def test_slips_lead_to_the_word_that_was_meant(typed: str, meant: str) -> None:
    assert nearest(typed, WORDS)[0] == meant


def test_what_is_far_short_or_a_number_is_left_alone() -> None:
    for word in ("qqqqqqq", "abc", "x", "wcag22", "2026"):
        assert nearest(word, WORDS) == []
    assert similar("criterions", WORDS, 4)[0] == "criterion"


def test_distance_is_that_of_the_whole_table() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        one, other = ("".join(chance.choices("abc", k=chance.randrange(7))) for _ in range(2))
        expected = _table(one, other)
        for most in (1, 2):
            found = distance(one, other, most)
            assert found == expected if expected <= most else found > most, (one, other)


def _table(one: str, other: str) -> int:
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def test_forms_of_a_word_and_words_after_a_particle() -> None:
    assert word_forms("lighthouse", ("en",), WORDS).same == ["lighthouses"]
    finnish = Words(majakka=3, majakan=2, majakoilla=1, makkara=9)
    assert sorted([*word_forms("majakoilla", ("fi",), finnish).kin]) == ["majakan", "majakka"]
    arabic = Words({"المتحف": 3, "متحف": 2, "وترميم": 1, "ترميم": 4})
    assert word_forms("متحف", ("ar",), arabic).same == ["المتحف"]
    assert longer_words("ترم", ("ar",), arabic, 9) == ["ترميم", "وترميم"]


def test_synonyms_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "synonyms.txt"
    file.write_text("car, automobile, motor car\ntv => television  # one way\n", encoding="utf-8")
    known = Synonyms.read(file)
    assert known.of("car") == ("automobile", "motor car")
    assert known.of("motor car") == ("car", "automobile")
    assert known.of("tv") == ("television",)
    assert known.of("television") == ()
    with pytest.raises(SettingsError, match="cannot read the synonyms"):
        Synonyms.read(tmp_path / "none.txt")
