from __future__ import annotations

import random

from quadloom.documents.words.simhash import distance, simhash


def test_texts_that_share_nearly_all_words_differ_in_few_bits() -> None:
    chance = random.Random(4)
    words = [f"word{chance.randrange(10_000)}" for _ in range(400)]
    text, other = " ".join(words), " ".join(f"other{number}" for number in range(400))
    assert distance(simhash(text), simhash(" ".join(words[1:]))) <= 3
    assert simhash(text) == simhash(text.upper().replace(" ", "\n"))
    assert distance(simhash(text), simhash(other)) > 16
    assert simhash(" \n") == 0
