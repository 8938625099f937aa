"""The five phases of a crawl by name, and which of them a page still waits for.

A page in the catalog owes the phases that were left to another process, or to a later command. The default crawl runs
all phases and owes nothing; `quadloom fetch` alone leaves detect, transform and extract owed.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Literal, get_args

PhaseName = Literal["fetch", "detect", "transform", "index", "extract"]
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)
ALL_PHASES: frozenset[PhaseName] = frozenset(PHASES)


class Owed(IntFlag):
    """Phases that a page waits for, as bits of a column."""

    NOTHING = 0
    DETECT = 1
    TRANSFORM = 2
    INDEX = 4
    EXTRACT = 8


OWED_BY_PHASE: dict[PhaseName, Owed] = {
    "detect": Owed.DETECT,
    "transform": Owed.TRANSFORM,
    "index": Owed.INDEX,
    "extract": Owed.EXTRACT,
}
# A phase works on what the phases before it have left: these must not be owed any more.
_BEFORE: dict[Owed, Owed] = {
    Owed.DETECT: Owed.NOTHING,
    Owed.TRANSFORM: Owed.NOTHING,  # it detects by itself
    Owed.INDEX: Owed.TRANSFORM,
    Owed.EXTRACT: Owed.TRANSFORM | Owed.INDEX,
}
_EVERYTHING = int(Owed.DETECT | Owed.TRANSFORM | Owed.INDEX | Owed.EXTRACT)


def waiting_states(phase: Owed) -> tuple[int, ...]:
    """All values of the column with which a page is ready for this phase."""
    return tuple(value for value in range(1, _EVERYTHING + 1) if value & phase and not value & _BEFORE[phase])


def left_owed(phases: frozenset[PhaseName]) -> Owed:
    """What a fetched page owes if only these phases are run on it. Transform includes detect."""
    owed = Owed.NOTHING
    for name, bit in OWED_BY_PHASE.items():
        if name not in phases and not (name == "detect" and "transform" in phases):
            owed |= bit
    return owed
