"""Addresses that are not well-formed: JSON-LD leaves out their statements, so that no other check sees them. Those in
which only spaces are wrong are read as browsers do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from quadloom.documents.checks.items import Problem, local
from quadloom.documents.checks.locating import placed
from quadloom.documents.syntaxes.iri import is_well_formed, resolve, spaced_term
from quadloom.documents.syntaxes.jsonld import contexts
from quadloom.documents.syntaxes.jsonld.source_positions import JsonldPlaces, MemberText
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.finding import Finding

DROPPED = frozenset(("jsonld-term", "jsonld-spaces"))
"""The codes of the findings by which JSON-LD counts them."""
_TEMPLATE = re.compile(r"\{[^{}\s]+\}")
_MOST = 50  # of one page
_SCHEMA = "https://schema.org/"


def name_dropped_addresses(context: Context, blanks: Mapping[str, int]) -> list[Finding]:
    """Findings for each address that JSON-LD could not take as it is, with its property and line.

    They take the place of the extractor's own findings, which only count.
    """
    vague = [one for one in context.findings if one.code in DROPPED]
    if "jsonld" not in blanks:
        return []
    places = JsonldPlaces(context, blanks["jsonld"])
    counted = sum(int(re.sub(r"\D.*", "", one.message) or 0) for one in vague)
    found = [_finding(context, one) for one in places.texts(_Dropped(context.base).is_dropped, counted, _MOST)]
    if len(found) >= counted:
        context.findings = [one for one in context.findings if one.code not in DROPPED]
    return [one for one in found if not _is_search_template(one)]


def without_what_was_dropped(problems: list[Problem], dropped: Sequence[Finding]) -> list[Problem]:
    """The problems without those that only repeat a bad address: an image with a bad address is not missing."""
    named = {(one.type, one.path.rpartition(" › ")[2]) for one in dropped}
    found: list[Problem] = []
    for problem in problems:
        if problem.code.startswith("schema-missing-"):
            kind = problem.item.kind.type
            names = problem.expected.replace(" or ", ", ").split(", ")
            left = [name for name in names if (kind, name) not in named]
            if not left or (" or " in problem.expected and len(left) < len(names)):
                continue
            if len(left) < len(names):
                listed = ", ".join(left)
                message = problem.message.replace(problem.expected, listed)
                problem = problem._replace(message=message, expected=listed, advice=f"add {listed}")
        found.append(problem)
    return found


def _is_search_template(one: Finding) -> bool:
    """The target of a SearchAction with a place for the words: search engines ask for it in this form."""
    return one.code == "jsonld-term" and one.type.endswith("Action") and one.path.endswith("target")


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
    if spaced_term(resolve(context.base, one.text), context.base) is not None:
        finding = Finding(
            "bad-url",
            f"{one.key} has a space: browsers read it as %20, other readers drop the address",
            "warning",
            advice="write %20 in place of each space",
            expected="an address without spaces",
        )
    elif _TEMPLATE.search(one.text):
        finding = Finding(
            "jsonld-term",
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
