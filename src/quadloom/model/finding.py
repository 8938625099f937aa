"""A defect in somebody else's data, with its place and advice: the audit trail of a crawl."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]
Phase = Literal["fetch", "detect", "transform", "index", "extract"]


class Finding(msgspec.Struct, frozen=True, array_like=True):
    """`code` is stable and documented in docs/reference/findings.md; `line` and `column` count from 1, 0 = unknown."""

    code: str
    message: str
    severity: Severity = "warning"
    phase: Phase = "transform"
    line: int = 0
    column: int = 0
    advice: str = ""
    syntax: str = ""

    def __str__(self) -> str:
        place = f" line {self.line}" + (f":{self.column}" if self.column else "") if self.line else ""
        advice = f" — {self.advice}" if self.advice else ""
        return f"{self.syntax or self.phase}{place}: {self.message}{advice}"
