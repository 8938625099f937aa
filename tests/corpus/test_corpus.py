"""One tiny file per rule: the file's name is the rule, the file beside it is what it must give.

`<folder>/<rule>.html` with `<rule>.nq` (statements of the syntax named like the folder), or `.links`, or `.txt`.
`python tests/corpus/test_corpus.py --write` writes missing expectations; read them before you commit them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quadloom.documents.transform import transform
from quadloom.settings import Settings, TransformSettings

HERE = Path(__file__).parent
URL = "https://site.example/folder/page"
TYPES = {".html": "text/html", ".xhtml": "application/xhtml+xml"}
CASES = sorted(path for path in HERE.glob("*/*") if path.suffix in TYPES)
ENDINGS = {"links": ".links", "text": ".txt"}


def told(path: Path) -> str:
    """What the case gives, in the form of its expectation."""
    folder = path.parent.name
    settings = Settings(transform=TransformSettings(syntaxes=[folder]))
    result = transform(path.read_bytes(), url=URL, content_type=TYPES[path.suffix], settings=settings)
    if folder == "links":
        rows = [(link.kind, link.target, link.anchor, link.rel, "nofollow" * link.nofollow) for link in result.links]
        return "".join("\t".join(row).rstrip() + "\n" for row in rows)
    if folder == "text":
        return result.text + "\n"
    lines = result.nquads.decode().splitlines()
    if folder != "html":  # the html syntax always runs; its statements have cases of their own
        alone = Settings(transform=TransformSettings(syntaxes=["html"]))
        own = transform(path.read_bytes(), url=URL, content_type=TYPES[path.suffix], settings=alone).nquads
        lines = [line for line in lines if line not in set(own.decode().splitlines())]
    return "".join(f"{line}\n" for line in lines)


def expectation(path: Path) -> Path:
    return path.with_suffix(ENDINGS.get(path.parent.name, ".nq"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    assert told(path) == expectation(path).read_text(encoding="utf-8")


def test_every_expectation_has_a_case() -> None:
    expected = {expectation(path) for path in CASES}
    assert {path for path in HERE.glob("*/*") if path.suffix in (".nq", ".links", ".txt")} == expected


if __name__ == "__main__" and "--write" in sys.argv:
    for case in CASES:
        if not expectation(case).exists():
            expectation(case).write_text(told(case), encoding="utf-8")
