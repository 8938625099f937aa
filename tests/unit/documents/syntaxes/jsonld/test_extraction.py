"""JSON-LD scripts of real pages: tolerant where the meaning is plain, and never all or nothing."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest

from quadloom.documents.syntaxes.jsonld.extraction import write
from quadloom.documents.syntaxes.jsonld.json import repaired_script
from quadloom.documents.syntaxes.jsonld.loader import ContextLoader
from quadloom.documents.syntaxes.sink import Sink
from quadloom.errors import SyntaxInvalid
from quadloom.model.finding import Finding

PAGE = "https://shop.example/p/1"
SOUND = '{"@context": "https://schema.org", "@type": "Thing", "name": "A"}'


def statements_of(*scripts: str, loader: ContextLoader | None = None) -> tuple[list[str], list[Finding]]:
    sink = Sink()
    findings = write(scripts, PAGE, sink, line_of=lambda _number: 10, loader=lambda: loader or ContextLoader())
    return sink.statements(), findings


def test_a_sound_script() -> None:
    assert statements_of(SOUND) == (
        [
            "_:b0 <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://schema.org/Thing>",
            '_:b0 <http://schema.org/name> "A"',
        ],
        [],
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"<!-- {SOUND} -->", "jsonld-comment"),
        (f"\n<!--//\n{SOUND}\n//-->\n".replace("<!--//", "<!--"), "jsonld-comment"),
        (f"//<![CDATA[\n{SOUND}\n//]]>", "jsonld-cdata"),
        (f"/*<![CDATA[*/{SOUND}/*]]>*/", "jsonld-cdata"),
        (f"<![CDATA[{SOUND}]]>", "jsonld-cdata"),
        (f"\ufeff{SOUND}", "jsonld-bom"),
        (SOUND.replace('"', "&quot;"), "jsonld-entities"),
        (SOUND.replace('"', "&#34;"), "jsonld-entities"),
    ],
)
def test_wrappers_are_taken_off_and_reported(text: str, code: str) -> None:
    statements, findings = statements_of(text)
    assert statements == statements_of(SOUND)[0]
    assert [finding.code for finding in findings] == [code]
    assert findings[0].advice


def test_raw_line_breaks_in_strings() -> None:
    statements, findings = statements_of(SOUND.replace('"A"', '"A\n\tB"'))
    assert '_:b0 <http://schema.org/name> "A\\n\tB"' in statements
    assert [finding.code for finding in findings] == ["jsonld-control-characters"]


@pytest.mark.parametrize("text", ['{"a": 1,}', "{'a': 1}", '{"a" 1}', "", "<!-- -->", "var x = {}", '{"a": "b""c"}'])
def test_nothing_is_guessed(text: str) -> None:
    statements, findings = statements_of(text)
    assert not statements
    assert [finding.severity for finding in findings] == ["error"]


def test_a_broken_script_takes_nothing_from_the_others() -> None:
    statements, findings = statements_of(SOUND, '{\n"@context": "https://schema.org",\n  "name": oops}', SOUND)
    assert len(statements) == 4
    assert [(finding.code, finding.line, finding.column) for finding in findings] == [("jsonld-invalid", 12, 11)]


def test_invalid_jsonld_is_a_finding_with_the_codes_of_the_specification() -> None:
    statements, findings = statements_of('{"@context": "https://schema.org", "@id": 7, "name": "x"}', SOUND)
    assert len(statements) == 2
    assert "invalid @id value" in findings[0].message


def test_unknown_context_is_a_finding_and_a_loader_cures_it() -> None:
    text = '{"@context": "https://c.example/", "p": 1}'
    assert "https://c.example/" in statements_of(text)[1][0].message
    loader = ContextLoader(lambda url: b'{"@context": {"p": "a:p"}}')
    assert statements_of(text, loader=loader)[0] == ['_:b0 <a:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>']


def test_inner_graphs_go_to_the_page() -> None:
    text = '{"@context": {"@vocab": "a:"}, "@id": "a:g", "@graph": [{"@id": "a:s", "p": "o"}]}'
    assert statements_of(text)[0] == ['<a:s> <a:p> "o"']


def test_labels_of_two_scripts_are_two_nodes() -> None:
    text = '{"@context": "https://schema.org", "@id": "_:x", "name": "%s"}'
    statements, _ = statements_of(text % "A", text % "B")
    assert len({statement.split()[0] for statement in statements}) == 2


def test_what_says_nothing_or_is_ill_formed_is_reported() -> None:
    assert [finding.code for finding in statements_of('{"name": "no context"}')[1]] == ["jsonld-empty"]
    statements, findings = statements_of('{"@context": "https://schema.org", "name": "x", "url": "http://a b/"}')
    assert len(statements) == 1
    assert [finding.code for finding in findings] == ["jsonld-term"]


def test_deep_nesting_is_a_finding() -> None:
    assert "deeper" in statements_of('{"a":' * 5000 + "1" + "}" * 5000)[1][0].message


@pytest.mark.parametrize("text", ['<!-- {"@id": "a"} -->', '{"@id": '])
def test_a_script_that_is_not_json_does_not_keep_its_page_in_memory(text: str) -> None:
    """Workers collect cycles after thousands of pages: an exception in a variable of the frame that it went through is
    such a cycle, and holds all callers with their documents."""

    class Page:
        pass

    def read() -> weakref.ref[Page]:
        page = Page()
        with contextlib.suppress(SyntaxInvalid):
            repaired_script(text)
        return weakref.ref(page)

    gc.disable()
    try:
        assert read()() is None
    finally:
        gc.enable()
