"""Build the compact table of schema.org's terms for `quadloom/checks/vocabularies/`.

    python tools/build_vocabulary.py schemaorg-terms.tsv.gz --release 30

The input has one term a line: kind, name, parents or domains, ranges, superseded by, inverse of, part of. The table
keeps what the checks need, in the format that `quadloom.documents.checks.vocabulary` reads and that users write for
their own vocabularies."""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "src/quadloom/documents/checks/vocabularies/schema.tsv"
HEAD = """\
# prefix schema
# namespace http://schema.org/
# namespace https://schema.org/
# namespace http://www.schema.org/
# namespace https://www.schema.org/
# namespace http://bib.schema.org/
# namespace http://health-lifesci.schema.org/
# namespace http://auto.schema.org/
# namespace http://pending.schema.org/
# code schema
# source https://schema.org/ release {release}: names, parents, domains, ranges and replacements of terms (facts)
# licence schema.org publishes its vocabulary under CC BY-SA 3.0
# built by tools/build_vocabulary.py
"""
# Release 30 lists it without a parent; the vocabulary has it below Intangible, and durations are text or things.
MOVED = {"Quantity": ("type", "Intangible")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("terms", type=Path)
    parser.add_argument("--release", required=True)
    arguments = parser.parse_args()
    rows = gzip.decompress(arguments.terms.read_bytes()).decode().splitlines()[1:]
    lines = [_line(row.split("\t")) for row in rows]
    TARGET.write_text(HEAD.format(release=arguments.release) + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, {len(lines)} terms")
    return 0


def _line(row: list[str]) -> str:
    kind, name, above, ranges, superseded = (*row, "", "", "", "")[:5]
    if name in MOVED:
        kind, above = MOVED[name]
    above = " ".join(term for term in above.split() if "://" not in term)
    return "\t".join((kind, name, above, ranges, superseded)).rstrip("\t")


if __name__ == "__main__":
    sys.exit(main())
