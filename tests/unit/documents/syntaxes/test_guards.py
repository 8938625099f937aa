"""What XML is kept from the native parser, in short texts and in long ones."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_parts import native_part
from quadloom.documents.syntaxes.guards import MAX_ATTRIBUTES, MAX_XML_DEPTH, check_xml, tag_bounds_in_python
from quadloom.errors import SyntaxInvalid

LONG = b"<!-- " + b"x" * 64 * MAX_ATTRIBUTES + b" -->"


def _nested(depth: int) -> bytes:
    return b"<r>" + b"<a x='>'>" * (depth - 1) + b"</a>" * (depth - 1) + b"</r>"


@pytest.mark.parametrize("padding", [b"", LONG], ids=["short", "long"])
def test_depth(padding: bytes) -> None:
    check_xml(padding + _nested(MAX_XML_DEPTH))
    with pytest.raises(SyntaxInvalid) as refusal:
        check_xml(padding + _nested(MAX_XML_DEPTH + 1))
    assert refusal.value.code == "nesting"


@pytest.mark.parametrize("padding", [b"", LONG], ids=["short", "long"])
def test_attributes_of_one_element(padding: bytes) -> None:
    siblings = b"<a/>" * MAX_XML_DEPTH
    check_xml(padding + b"<r>" + siblings + b"<b" + b" abc='1'" * MAX_ATTRIBUTES + b"/></r>")
    with pytest.raises(SyntaxInvalid) as refusal:
        check_xml(padding + b"<r>" + siblings + b"<b" + b" abc='1'" * (MAX_ATTRIBUTES + 1) + b"/></r>")
    assert refusal.value.code == "attributes"


@pytest.mark.parametrize("padding", [b"", LONG], ids=["short", "long"])
def test_what_only_looks_like_tags(padding: bytes) -> None:
    much = b"<a>" * (MAX_XML_DEPTH + 1)
    check_xml(padding + b"<r><!-- " + much + b" --><![CDATA[" + much + b"]]><?p " + much + b"?></r>")


@pytest.mark.parametrize("padding", [b"", LONG], ids=["short", "long"])
def test_no_text_needs_numpy(padding: bytes) -> None:
    """Importing it costs a worker as much CPU as reading fifty pages."""
    code = (
        "import sys; from quadloom.documents.syntaxes.guards import check_xml; "
        f"check_xml(b'<r>' + b'<a></a>' * 1000 + {padding!r} + b'</r>'); sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.lists(st.sampled_from([b"<", b">", b"/", b"/>", b"</", b"<a", b"!", b"<?", b"'", b"x" * 9, b" "])))
def test_both_implementations_find_the_same_bounds(parts: list[bytes]) -> None:
    texts = native_part("texts")
    xml = b"".join(parts)
    assert texts.tag_bounds(xml) == tag_bounds_in_python(xml)
