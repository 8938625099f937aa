"""Terms and statements that C writes are those that the implementations in Python write, whatever the text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from native_parts import native_part
from quadloom.documents.syntaxes import sink, terms
from quadloom.documents.syntaxes.html.text import fold, fold_in_python
from thoroughness import examples

native_part("terms")

SPACES = "".join(chr(code) for code in range(0x3100) if chr(code).isspace()) + "\u200b\u180e\ufeff"
CHARACTERS = st.one_of(
    st.sampled_from('ab "\\\n\r\t\x00\x1f\x7fü日😀\ud800' + SPACES), st.characters(codec=None, exclude_categories=())
)
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=12),
    st.builds(lambda text, times: text * times, st.text(CHARACTERS), st.integers(2, 300)),
)
LANGUAGES = st.one_of(
    st.sampled_from(("", "en", "EN-gb", "zh-Hant-TW", "es-419", "en-", "e", "eng-Latn", "en-Latn-", "de-1996", "x-a")),
    st.text("aZ-19ü\n", max_size=12),
)
IRIS = st.one_of(
    st.text("htps:/.?#@%[]a-Z09ü \\\n", max_size=20).map("http://a".__add__),
    st.text("htps:/.?#:0123456789", max_size=16).map("https://".__add__),
    TEXTS,
)


@settings(max_examples=examples(300, 5000), deadline=None)
@given(TEXTS, LANGUAGES, st.sampled_from(("", terms.XSD + "date", "urn:ü")))
def test_literals(text: str, language: str, datatype: str) -> None:
    assert terms.literal(text, language, datatype) == terms.literal_in_python(text, language, datatype)
    assert terms.literal(text, datatype=datatype) == terms.literal_in_python(text, datatype=datatype)
    assert terms.literal(text, language=language) == terms.literal_in_python(text, language=language)


@settings(max_examples=examples(300, 5000), deadline=None)
@given(IRIS)
@example("http://a:123456/")
@example("http://a:/")
@example("http://a:8080?b#c#d")
@example("https://")
def test_iris(value: str) -> None:
    assert terms.iri(value) == terms.iri_in_python(value)


@settings(max_examples=examples(300, 5000), deadline=None)
@given(TEXTS)
def test_folded_texts(text: str) -> None:
    assert fold(text) == fold_in_python(text)


class _InPython(sink.StatementsInPython):
    """A sink of the other implementation, as far as `add` needs it."""

    def __init__(self, limits: sink.SinkLimits) -> None:
        super().__init__(limits.statements, limits.characters, 8, 8 + 1024)
        self.asked = sink.Sink(limits)  # for the limits of long terms

    def _takes(self, terms: Sequence[str]) -> bool:
        return self.asked._takes(terms)


@settings(max_examples=examples(100, 1000), deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from(("<a>", "_:b", '"c"', "<" + "d" * 1020, "<" + "e" * 2000))] * 3), max_size=12),
    st.integers(0, 6),
    st.sampled_from((0, 30, 2000, 9000, 1 << 20)),
    st.integers(0, 2),
)
def test_statements(triples: list[tuple[str, str, str]], most: int, characters: int, long_terms: int) -> None:
    limits = sink.SinkLimits(most, characters, long_terms, 1500)
    native, python = sink.Sink(limits), _InPython(limits)
    for triple in triples:
        native.add(*triple)
        python.add(*triple)
    left_out = python.overflow + python.asked.overflow
    assert (list(native.triples), native.overflow) == (list(python._triples), left_out)
    assert (native._room, native.long_iris) == (python._room, python.asked.long_iris)


@settings(max_examples=examples(100, 1000), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("<a>", "_:b", "<ü>")),
            st.sampled_from(("<p>", "<q>", "<日>", "<p1>")),
            st.sampled_from(('"c d"@en', '"ü . "', "<e>", '""', '"' + "x" * 40 + '"')),
        ),
        max_size=12,
    ),
    st.sampled_from((3, 8, 100)),
    st.sampled_from((60, 300, 1 << 20)),
    st.sampled_from((30, 1024)),
    st.booleans(),
)
def test_lines(triples: list[tuple[str, str, str]], most: int, characters: int, longest: int, ends: bool) -> None:
    limits = sink.SinkLimits(most, characters)
    native, python = sink.Sink(limits), _InPython(limits)
    lines = "\n".join([f"{' '.join(triple)} ." for triple in triples]) + ("\n" if ends else "")
    for _ in range(2):
        present = len(python._triples)
        assert native._add_lines(lines.encode(), present, longest) is python._add_lines(
            lines.encode(), present, longest
        )
        assert (list(native.triples), native._room) == (list(python._triples), python._room)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError):
        sink.Sink().add("<a>", "<b>", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        sink.Sink().add("<a>", "<b>")  # type: ignore[call-arg]
    for line in (b"<a>", b"<a> <b>", b"<a> <b> "):
        with pytest.raises(ValueError, match="line"):
            sink.Sink()._add_lines(line, 0, 100)
    with pytest.raises(AttributeError):
        terms.literal(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        terms.literal("a", "en", words="b")  # type: ignore[call-arg]
