"""One tiny document per rule of XML and JSON formats: the name is the rule, the `.nq` beside it what it must say.

Links, dates and findings that a rule is about follow the statements as comments.
`python tests/corpus/xml/test_xml_corpus.py --write` writes missing expectations; read them before you commit them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quadloom.documents.transform import transform

HERE = Path(__file__).parent
URL = "https://site.example/folder/feed"
TYPES = {".xml": "application/xml", ".rss": "application/rss+xml", ".json": "application/json", ".svg": "image/svg+xml"}
CASES = sorted(path for path in HERE.glob("*/*") if path.suffix in TYPES)


def told(path: Path) -> str:
    """Statements without their graph name, then links, dates and findings as comments."""
    result = transform(path.read_bytes(), url=URL, content_type=TYPES[path.suffix])
    lines = [line.replace(f" <{URL}> .", " .") for line in result.nquads.decode().splitlines()]
    lines += [
        f"# link {link.kind} {link.target} {link.anchor}".rstrip() for link in result.links if link.kind != "vocabulary"
    ]
    lines += [f"# date {url} {at:.0f}" for url, at in result.lastmods]
    lines += [f"# finding {finding.code} {finding.line}:{finding.column}" for finding in result.findings]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    assert told(path) == path.with_suffix(".nq").read_text(encoding="utf-8")


def test_every_expectation_has_a_case() -> None:
    assert set(HERE.glob("*/*.nq")) == {path.with_suffix(".nq") for path in CASES}


if __name__ == "__main__" and "--write" in sys.argv:
    for case in CASES:
        if not case.with_suffix(".nq").exists():
            case.with_suffix(".nq").write_text(told(case), encoding="utf-8")
