"""Without the parts in C everything is the same: one switch for all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from native_parts import native_part
from unit import ROOT

PARTS = ("elements", "graphs", "records", "terms", "texts")
SUITES = ("tests/unit/documents", "tests/conformance", "tests/corpus", "tests/property")
DEMO = """
import sys
from quadloom import transform
body = '<title>\u041c</title><p itemscope><b itemprop=n>x</b>y <a href=/b>z</a>'.encode()
print(transform(body, url='https://a.example/', content_type='text/html'))
print(sorted(name for name in sys.modules if name.startswith('quadloom.documents.native')))
"""


def run(*command: str, without_native: bool) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "QUADLOOM_WITHOUT_NATIVE"}
    if without_native:
        environment["QUADLOOM_WITHOUT_NATIVE"] = "1"
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_all_parts_were_built() -> None:
    for name in PARTS:
        assert native_part(name).__file__


def test_the_switch_is_for_all_parts() -> None:
    native_part("elements")
    said, used = run(sys.executable, "-c", DEMO, without_native=False).splitlines()
    assert all(f"quadloom.documents.native.{name}" in used for name in PARTS if name != "graphs")
    assert run(sys.executable, "-c", DEMO, without_native=True).splitlines() == [said, "[]"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_suites_pass_without_the_parts_in_c() -> None:
    run(sys.executable, "-m", "pytest", "-q", "-n", "0", *SUITES, without_native=True)
