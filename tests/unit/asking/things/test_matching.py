"""How alike two names are."""

from __future__ import annotations

import pytest

from quadloom.asking.things.matching import similarity


@pytest.mark.parametrize(
    ("asked_for", "name", "low", "high"),
    [
        ("Ada Lovelace", "ada lovelace", 1.0, 1.0),
        ("Lovelace, Ada", "Ada Lovelace", 0.99, 0.99),
        ("Jose Marti", "José Martí", 1.0, 1.0),
        ("A. Lovelace", "Ada Lovelace", 0.9, 0.98),
        ("Ada Lovelce", "Ada Lovelace", 0.9, 0.98),
        ("distant lighthouse", "The Distant Lighthouse", 0.9, 0.98),
        ("Ada", "Ida", 0.0, 0.7),
        ("", "Ada", 0.0, 0.0),
    ],
)
def test_similarity(asked_for: str, name: str, low: float, high: float) -> None:
    assert low <= similarity(asked_for, name) <= high
