"""What the codes of the checks mean, for the reference, `quadloom audit` and the web pages."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from quadloom.model.finding import Severity

_FILE = Path(__file__).parent / "rules" / "codes.toml"


class CodeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One code. See the head of rules/codes.toml."""

    code: str
    severity: Severity
    title: str
    text: str
    fix: str
    wrong: str = ""
    right: str = ""
    wrong_markup: str = ""
    right_markup: str = ""
    visible: str = ""
    syntaxes: tuple[str, ...] = ("jsonld", "microdata", "rdfa")


class _CodesFile(msgspec.Struct, frozen=True):
    code: tuple[CodeEntry, ...]


@lru_cache(maxsize=1)
def codes() -> dict[str, CodeEntry]:
    """All codes of the checks, in the order of the reference."""
    entries = msgspec.toml.decode(_FILE.read_bytes(), type=_CodesFile).code
    return {entry.code: entry for entry in entries}
