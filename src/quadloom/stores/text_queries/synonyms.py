"""Words that mean the same, from a file of the user (`index.synonyms`).

One group a line, words separated by commas: `car, automobile, motor car` finds each by any other. `tv => television`
works in this direction only. `#` begins a comment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quadloom.documents.words.analysis import query_tokens
from quadloom.errors import SettingsError


class Synonyms:
    def __init__(self, groups: Mapping[str, tuple[str, ...]]) -> None:
        self._groups = groups

    def of(self, tokens: str) -> tuple[str, ...]:
        """Other words for a word or phrase, given as tokens separated by blanks."""
        return self._groups.get(tokens, ())

    @classmethod
    def read(cls, path: Path) -> Synonyms:
        """Raises `SettingsError` if the file cannot be read."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"cannot read the synonyms {path}: {error}", hint="correct index.synonyms, or leave it empty"
            ) from error
        groups: dict[str, tuple[str, ...]] = {}
        for line in lines:
            asked, arrow, found = line.partition("#")[0].partition("=>")
            words = _words(asked)
            for word in words:
                others = _words(found) if arrow else [other for other in words if other != word]
                key = " ".join(query_tokens(word))
                groups[key] = tuple(dict.fromkeys((*groups.get(key, ()), *others)))
        return cls(groups)


def _words(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


NO_SYNONYMS = Synonyms({})
