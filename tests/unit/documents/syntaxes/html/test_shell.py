"""Which pages say nothing without their scripts."""

from __future__ import annotations

import pytest

from quadloom.documents.syntaxes.html.shell import why_shell

PROGRAM = "<script src=/app.js></script>"
TEXT = "<p>" + "An evening of songs by the river, with readings and a market. " * 8


def page(body: str, head: str = "") -> bytes:
    return f"<!doctype html><html><head><title>t</title>{head}</head><body>{body}</body></html>".encode()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (f"<div id=root></div>{PROGRAM}", "empty element"),
        (f"<app-root></app-root>{PROGRAM}", "empty element"),
        (f"<div id=app><noscript>x</noscript></div><footer>About us</footer>{PROGRAM}", "empty element"),
        (f"<noscript>Please enable JavaScript.</noscript><p>{'Loading the programme … ' * 5}{PROGRAM}", "JavaScript"),
        (f"<div></div>{PROGRAM}", "no text"),
        ("<div></div><script>document.body.append('x')</script>", "no text"),
        (f"<h1>{{{{ event.name }}}}</h1>{TEXT}{PROGRAM}", "template"),
    ],
)
def test_shells(body: str, word: str) -> None:
    assert word in why_shell(page(body))


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<p>short",  # nothing would come of it
        f"<div id=root>{TEXT}</div>{PROGRAM}",  # rendered by the server
        f"<div id=root></div>{TEXT}{PROGRAM}",
        f"<noscript>Enable JavaScript</noscript>{TEXT}{PROGRAM}",
        "<div></div><script type='application/ld+json'>{}</script>",
        "<div></div><script type=importmap>{}</script>",
        "".join(f"<a href=/{number}>{number}</a>" for number in range(12)) + PROGRAM,
        f"<p>{'Twenty words of text make a page that can be read. ' * 3}{PROGRAM}",
    ],
)
def test_pages_that_can_be_read_without_scripts(body: str) -> None:
    assert why_shell(page(body)) == ""


@pytest.mark.parametrize("body", [b"", b"\x00\xff" * 50, b"<script>", b"<" * 1000, b"{{" * 5000])
def test_no_bytes_are_too_much(body: bytes) -> None:
    assert isinstance(why_shell(body), str)
