"""RDF files: places of errors, what is kept of broken ones, and guards against hostile ones."""

from __future__ import annotations

import time

import pyoxigraph as ox
import pytest

from quadloom.documents.syntaxes.rdf.files import RdfKind, extract, read
from quadloom.errors import SyntaxInvalid

URL = "https://example.org/dir/file"
HEAD = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/" xmlns:unused="http://u/">'
TAIL = b"</rdf:RDF>"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("turtle", b'<#s> <http://e/p> "o" .'),
        ("turtle", b'\xef\xbb\xbf<#s> <http://e/p> "o" .'),
        ("trig", b'{ <#s> <http://e/p> "o" . }'),
        ("ntriples", b'<https://example.org/dir/file#s> <http://e/p> "o" .'),
        ("nquads", b'<https://example.org/dir/file#s> <http://e/p> "o" .'),
        ("rdfxml", HEAD + b'<rdf:Description rdf:about="#s" e:p="o"/>' + TAIL),
    ],
)
def test_kinds(kind: RdfKind, body: bytes) -> None:
    assert extract(body, kind=kind, url=URL) == b'<https://example.org/dir/file#s> <http://e/p> "o" .\n'


def test_rdf_1_2() -> None:
    out = extract(b"PREFIX : <a:> :s :p <<( :a :b :c )>>, 'x'@ar--rtl .", kind="turtle", url=URL)
    assert out == b'<a:s> <a:p> <<( <a:a> <a:b> <a:c> )>> .\n<a:s> <a:p> "x"@ar--rtl .\n'


def test_error_place() -> None:
    with pytest.raises(SyntaxInvalid) as caught:
        extract(b'<a:s> <a:p> "o" .\n<a:s> oops .', kind="turtle", url=URL)
    assert caught.value.line == 2
    assert "line" not in caught.value.message


def test_what_stands_before_a_defect_is_kept() -> None:
    out = read(b'<a:s> <a:p> "1" .\n<a:s> oops .\n<a:s> <a:p> "2" .', kind="turtle", url=URL)
    assert out.nquads == b'<a:s> <a:p> "1" .\n'
    assert [(finding.code, finding.line) for finding in out.findings] == [("rdf-syntax", 2)]


def test_line_formats_go_on_after_a_defect() -> None:
    out = read(b'<a:s> <a:p> "1" .\noops\n<a:s> <a:p> "2" .\n', kind="ntriples", url=URL)
    assert out.nquads == b'<a:s> <a:p> "1" .\n<a:s> <a:p> "2" .\n'
    assert [finding.line for finding in out.findings] == [2]


def test_something_else_under_a_wrong_name_ends_soon() -> None:
    out = read(b"oops\n" * 10_000, kind="nquads", url=URL)
    assert len(out.findings) == 20


def test_statement_limit() -> None:
    body = b"".join(b'<a:s> <a:p> "%d" .\n' % n for n in range(10))
    out = read(body, kind="ntriples", url=URL, limit=7)
    assert out.nquads.count(b"\n") == 7
    assert [finding.code for finding in out.findings] == ["rdf-truncated"]
    assert not read(body, kind="ntriples", url=URL, limit=10).findings


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "windows-1252"])
def test_other_encodings_of_xml(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>{HEAD.decode()}<e:T rdf:about="a:s" e:p="é"/>{TAIL.decode()}'
    assert '<a:s> <http://e/p> "é" .' in extract(text.encode(encoding), kind="rdfxml", url=URL).decode()


def test_xml_that_cannot_be_decoded() -> None:
    with pytest.raises(SyntaxInvalid):
        extract(b'<?xml version="1.0" encoding="klingon"?><a/>', kind="rdfxml", url=URL)


@pytest.mark.parametrize(
    ("content", "literal"),
    [
        (b"<br />", b"<br></br>"),
        (b"a &amp; <e:b c='1' a=\"2\"/> t", b'a &amp; <e:b xmlns:e=\\"http://e/\\" a=\\"2\\" c=\\"1\\"></e:b> t'),
        (b"<!-- c --><?p i?>", b"<!-- c --><?p i?>"),
        (b"<e:x rdf:parseType='Literal'><y/></e:x>", b"<y></y>"),
    ],
)
def test_xml_literals_are_canonical(content: bytes, literal: bytes) -> None:
    body = (
        HEAD
        + b'<rdf:Description rdf:about="a:s"><e:p rdf:parseType="Literal">'
        + content
        + b"</e:p></rdf:Description>"
        + TAIL
    )
    out = extract(body, kind="rdfxml", url=URL)
    assert out.startswith(b'<a:s> <http://e/p> "')
    assert literal in out
    assert b"http://u/" not in out


DEEP = 30_000
HOSTILE: dict[str, tuple[RdfKind, bytes]] = {
    "laughs": (
        "rdfxml",
        b'<!DOCTYPE x [<!ENTITY a "lolololol">'
        + b"".join(b'<!ENTITY %c "' % n + b"&%c;" % (n - 1) * 10 + b'">' for n in range(98, 107))
        + b"]>" + HEAD + b'<e:a e:b="&j;"/>' + TAIL,
    ),
    "many references": ("rdfxml", b'<!DOCTYPE x [<!ENTITY a "' + b"x" * 60_000 + b'">]>' + HEAD + b"&a;" * 9000 + TAIL),
    "entity of itself": ("rdfxml", b'<!DOCTYPE x [<!ENTITY a "&a;">]>' + HEAD + b'<e:a e:b="&a;"/>' + TAIL),
    "parameter entity": ("rdfxml", b'<!DOCTYPE x [<!ENTITY % a "b">]>' + HEAD + TAIL),
    "deep": ("rdfxml", HEAD + b"<e:a><e:b>" * DEEP + b"</e:b></e:a>" * DEEP + TAIL),
    "deep, quoted ends": ("rdfxml", HEAD + b"<e:a e:x='/>'>" * DEEP + b"</e:a>" * DEEP + TAIL),
    "deep, ends in comments": ("rdfxml", HEAD + b"<!--</a>--><e:a>" * DEEP + b"</e:a>" * DEEP + TAIL),
    "deep, ends in CDATA": ("rdfxml", HEAD + b"<![CDATA[</a>]]><e:a>" * DEEP + TAIL),
    "attributes": ("rdfxml", HEAD + b"<e:a " + b" ".join(b'e:n%d="x"' % n for n in range(80_000)) + b"/>" + TAIL),
    "attributes, quoted ends": (
        "rdfxml", HEAD + b"<e:a " + b" ".join(b'e:n%d=">"' % n for n in range(80_000)) + b"/>" + TAIL
    ),
    "tags without end": ("rdfxml", b"<a" * 500_000),
    "comments without end": ("rdfxml", b"<!--" * 300_000),
    "quotes without end": ("rdfxml", b'<a "' * 300_000),
    "triple terms": ("turtle", b"PREFIX : <a:> :a :b " + b"<<( :a :b " * DEEP + b":c" + b")>>" * DEEP + b" ."),
    "reifiers": ("trig", b"PREFIX : <a:> " + b"<< " * DEEP),
    "triple terms in lines": ("nquads", b"<a:s> <a:p> " + b"<<( <a:s> <a:p> " * DEEP),
    "strings without end": ("turtle", b'<< """' + b'\\"""' * 200_000 + b"<<" * 200),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_soon(name: str) -> None:
    kind, body = HOSTILE[name]
    start = time.process_time()
    out = read(body, kind=kind, url=URL)
    assert time.process_time() - start < 5  # each takes about 50 ms
    assert out.findings
    assert not out.nquads


def test_ordinary_large_xml_passes_the_guards() -> None:
    element = b'<e:T rdf:about="a:%d" e:p="x"><e:q>a > b </e:q><e:r rdf:resource="a:o"/><!-- <x> --></e:T>'
    body = b'<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY x "http://x/">]>' + HEAD
    out = extract(body + b"".join(element % n for n in range(2000)) + TAIL, kind="rdfxml", url=URL)
    assert out.count(b"\n") == 8000


def test_the_same_bytes_give_the_same_statements_also_at_the_limit() -> None:
    """Labels of the parser are random and of varying length: they must not decide what is left out."""
    nested = b"".join(
        b':s%d :p [ :q [ :r "a> _:b1 ." ; :t "_:b2 <x:g> ."@en ] ] ; :o _:n%d .\n' % (n, n % 7) for n in range(2000)
    )
    body = b"@prefix : <http://x.example/> .\n" + nested
    whole = [read(body, kind="turtle", url="http://x.example/") for _ in range(2)]
    assert whole[0] == whole[1]
    assert len(ox.Dataset(ox.parse(whole[0].nquads, ox.RdfFormat.N_QUADS))) == 2000 * 5
    assert whole[0].nquads.count(b'"a> _:b1 ."') == 2000, "labels inside of literals stay"
    cut = [read(body, kind="turtle", url="http://x.example/", characters=100_000) for _ in range(5)]
    assert len({one.nquads for one in cut}) == 1
    assert 90_000 < len(cut[0].nquads) <= 100_000
    assert cut[0].findings[0].code == "rdf-truncated"
