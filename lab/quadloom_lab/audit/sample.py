"""A sample of the findings of real sites, to be judged by a reader, and what the readers said.

`judged.tsv` has the verdicts: true or false, useful or not, and the few characters of the source on which the verdict
rests. The pages themselves are not in the repository.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from quadloom.asking.audit.report import PageFindings
from quadloom.model.finding import Finding

JUDGED = Path(__file__).parent / "judged.tsv"


class Sampled(NamedTuple):
    page: str
    finding: Finding


class Verdict(NamedTuple):
    """One line of `judged.tsv`. `is_true`, `is_useful`: yes or no."""

    seed: str
    page: str
    line: str
    code: str
    path: str
    quoted: str
    is_true: str
    is_useful: str
    why: str


def drawn(pages: Iterable[PageFindings], seed: str, count: int) -> list[Sampled]:
    """Findings drawn with equal chance, in the order of the pages' addresses: the same for the same seed."""
    found = [Sampled(page.row.href, finding) for page in pages for finding in page.findings]
    found.sort(key=lambda one: (one.page, one.finding.code, one.finding.path, one.finding.line, one.finding.message))
    return sorted(Random(seed).sample(found, min(count, len(found))), key=lambda one: (one.finding.code, one.page))


def verdicts() -> list[Verdict]:
    with JUDGED.open(encoding="utf-8", newline="") as file:
        return [
            Verdict(*row)
            for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if row and row[0] != "seed"
        ]


def shares(given: Sequence[Verdict]) -> tuple[float, float]:
    """Of all findings that were judged: those that are not false, and those that are useful."""
    count = max(1, len(given))
    return sum(one.is_true == "yes" for one in given) / count, sum(one.is_useful == "yes" for one in given) / count
