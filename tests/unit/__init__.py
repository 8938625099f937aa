"""Unit tests. The folders mirror `src/quadloom`: the tests of `a/b.py` are in `a/test_b.py`. A file with another name
tests what several modules of its folder do together."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
