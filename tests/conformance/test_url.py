"""URL parsing against the web platform tests' urltestdata.json: every href equal, every failure a failure."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quadloom.model.url import absolute

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
DATA = SHARED / "suites/url/urltestdata.json"


@pytest.mark.skipif(not DATA.exists(), reason=f"the URL suite is not at {DATA}")
def test_every_case() -> None:
    cases = [case for case in json.loads(DATA.read_text(encoding="utf-8")) if isinstance(case, dict)]
    wrong = []
    for case in cases:
        base = case.get("base")
        got = absolute(case["input"], base)
        if got != (None if case.get("failure") else case["href"]):
            wrong.append((case["input"], base, got, case.get("href")))
    assert len(cases) >= 891
    assert not wrong, wrong[:5]
