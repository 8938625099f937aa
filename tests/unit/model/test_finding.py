"""Findings as JSON shows them, wherever a record holds one."""

from __future__ import annotations

import msgspec

from quadloom.model.finding import Finding, PageAudit, named


class Held(msgspec.Struct, frozen=True):
    url: str
    findings: tuple[Finding, ...] = ()


class Tree(msgspec.Struct, frozen=True):
    name: str
    children: tuple[Tree, ...] = ()
    held: Held | None = None


class Anything(msgspec.Struct, frozen=True):
    value: object


class Plain(msgspec.Struct, frozen=True):
    name: str
    parts: dict[str, list[tuple[str, int]]] = {}
    children: tuple[Plain, ...] = ()


FINDING = Finding("code", "words")


def test_a_record_that_cannot_hold_a_finding_stays_as_it_is() -> None:
    plain = Plain("a", {"b": [("c", 1)]}, (Plain("d"),))
    assert named(plain) is plain


def test_findings_are_named_wherever_they_are() -> None:
    for value in (
        Held("http://a.example/", (FINDING,)),
        Tree("a", (Tree("b", (), Held("http://a.example/", (FINDING,))),)),
        Anything([{"deep": Held("http://a.example/", (FINDING,))}]),
        {"x": [Anything(FINDING)]},
    ):
        shown = msgspec.json.encode(named(value))
        assert b'"code":"code"' in shown and b'"fix":' in shown, value
        assert msgspec.json.decode(shown) == msgspec.to_builtins(named(value))


def test_an_audit_of_a_page_is_named() -> None:
    assert named(Anything(PageAudit((("Event", 2),)))) == {"value": {"types": {"Event": 2}, "features": {}}}
