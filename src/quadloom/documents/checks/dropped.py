"""Addresses that are not well-formed: JSON-LD leaves out their statements, so that no other check sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from quadloom.documents.checks.items import local
from quadloom.documents.checks.locating import placed
from quadloom.documents.syntaxes.iri import is_well_formed, resolve
from quadloom.documents.syntaxes.jsonld import contexts
from quadloom.documents.syntaxes.jsonld.source_positions import JsonldPlaces, MemberText
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.finding import Finding

DROPPED = "jsonld-term"
"""The code of the finding by which JSON-LD counts them."""
_TEMPLATE = re.compile(r"\{[^{}\s]+\}")
_MOST = 50  # of one page
_SCHEMA = "https://schema.org/"


def name_dropped_addresses(context: Context, blanks: Mapping[str, int]) -> list[Finding]:
    """Findings for each address that made JSON-LD leave out a statement, with its property and line.

    They take the place of the extractor's own finding, which only counts.
    """
    vague = [one for one in context.findings if one.code == DROPPED]
    if "jsonld" not in blanks:
        return []
    places = JsonldPlaces(context, blanks["jsonld"])
    found = [_finding(context, one) for one in places.texts(_Dropped(context.base).is_dropped, _MOST)]
    if len(found) >= sum(int(re.sub(r"\D.*", "", one.message) or 0) for one in vague):
        context.findings = [one for one in context.findings if one.code != DROPPED]
    return found


class _Dropped:
    """Knows which texts gave no statement."""

    def __init__(self, base: str) -> None:
        known = contexts.find(_SCHEMA)
        self._terms = known.active.terms if known is not None else {}
        self._base = base

    def is_dropped(self, key: str, text: str) -> bool:
        if text.isidentifier():  # a type, as most are: it is part of an IRI
            return False
        term = self._terms.get(key)
        is_address = key in ("@id", "@type") or (term is not None and term.type == "@id")
        return is_address and not text.startswith("_:") and not is_well_formed(resolve(self._base, text))


def _finding(context: Context, one: MemberText) -> Finding:
    name = local(one.type)
    if _TEMPLATE.search(one.text):
        finding = Finding(
            DROPPED,
            f"{one.key} is a URL template, not an address: its statement is left out",
            "info",
            advice="describe an EntryPoint with urlTemplate",
            expected="an EntryPoint with urlTemplate",
        )
    else:
        finding = Finding(
            "bad-url",
            f"{one.key} is not a URL: its statement is left out",
            "error",
            advice="write the whole address, without spaces and other characters that need %-escapes",
            expected="an absolute address, https://…",
        )
    path = f"{name or 'item'} › {one.key}"
    finding = msgspec.structs.replace(finding, syntax="jsonld", path=path, type=name, found=one.text[:120])
    return placed(context, finding, one.place.start)
