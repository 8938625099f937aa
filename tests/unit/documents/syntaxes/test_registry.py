"""`Context`: what extractors, ours and those of plug-ins, share while they read one document."""

from __future__ import annotations

import pytest

from quadloom.documents.syntaxes.registry import Context

PAGE = b"""<!doctype html><title>T</title><table><tr><td>1</table><p>a<p>b<my-thing>c</my-thing>
<svg><linearGradient/></svg><x:y>z</x:y><a href=/>home</a>"""
COUNTS = {"a": 1, "A": 1, "table": 1, "TABLE": 1, "td": 1, "p": 2, "my-thing": 1, "x:y": 1, "linearGradient": 1,
          "title": 1, "area": 0, "video": 0, "": 0, "no such, [name]": 0, "*": 0}  # fmt: skip


@pytest.mark.parametrize(("tag", "count"), COUNTS.items())
def test_elements_of_any_name_are_found(tag: str, count: int) -> None:
    context = Context.standalone(PAGE, "html", url="https://a.example/")
    for _ in range(2):  # the second time from memory
        assert [(node.tag or "").lower() for node in context.elements(tag)] == [tag.lower()] * count


def test_a_standalone_context_knows_charset_and_root() -> None:
    body = "<?xml version='1.0' encoding='iso-8859-1'?><a xmlns='urn:x'>é</a>".encode("latin_1")
    context = Context.standalone(body, "xml", url="https://a.example/")
    assert (context.document.charset, context.document.root) == ("windows-1252", "{urn:x}a")
    assert context.root.text == "é"
