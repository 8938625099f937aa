"""All checks of one page, on the statements that the extractors have made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from quadloom.documents.checks.consistency import consistency_problems
from quadloom.documents.checks.dropped import DROPPED, name_dropped_addresses, without_what_was_dropped
from quadloom.documents.checks.ignored import IGNORED_SIGNS, ignored_markup
from quadloom.documents.checks.items import Items, Problem
from quadloom.documents.checks.locating import located
from quadloom.documents.checks.profiles import Profile, ProfileRule, profiles
from quadloom.documents.checks.shapes import NodeShape, shape_problems, shapes
from quadloom.documents.checks.vocabulary import Vocabularies, vocabularies
from quadloom.documents.checks.vocabulary_checks import vocabulary_problems
from quadloom.documents.checks.written import written_mistakes
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.finding import WEIGHT, Finding, PageAudit
from quadloom.model.quads import Triple
from quadloom.settings import AuditSettings

# Our own description of the page, and syntaxes whose vocabulary we choose ourselves.
_NOT_CHECKED = frozenset(
    ("html", "meta", "text", "microformats", "rss", "atom", "jsonfeed", "sitemap", "opml", "opensearch", "svg", "xml")
)
_MOST_STATEMENTS = 20_000  # a dump is no page; its first statements show what is wrong with it
_MOST_FINDINGS = 100
_MOST_TYPES = 20
_ROOT = re.compile(r"://[^/]*/?(?:(?:index|default)\.\w+)?(?:[?#].*)?\Z")  # a site's first page


class PageChecks(msgspec.Struct, frozen=True):
    """What the checks found: defects, and the kinds of things on the page with the rich results they allow."""

    findings: list[Finding]
    audit: PageAudit


NOTHING = PageChecks([], PageAudit())


def check_page(
    context: Context, statements: Sequence[Triple], counts: Sequence[tuple[str, int]], blanks: Mapping[str, int]
) -> PageChecks:
    """Check the statements of a page. `counts` are (syntax, statements) in their order, `blanks` the number of blank
    nodes before each syntax. Raises `SettingsError` for a vocabulary or profile that cannot be read."""
    wanted = context.settings.audit
    tables, rules, graphs = _tools(wanted)
    slices: list[tuple[str, Sequence[Triple]]] = []
    start = 0
    for syntax, count in counts:
        if syntax not in _NOT_CHECKED:
            part = statements[start : start + min(count, _MOST_STATEMENTS)]
            if syntax == "opengraph":  # on most pages, and seldom with anything to say about it
                part = [one for one in part if not tables.silent[one[1]]]
            if part:
                slices.append((syntax, part))
        start += count
    ignored: list[Finding] = []
    if context.document.kind == "xhtml" or not context.signs.isdisjoint(IGNORED_SIGNS):  # RDFa of XML needs no signs
        ignored = [one for one in ignored_markup(context, blanks) if one.code not in wanted.ignore]
    if not slices:
        ignored += _written(context, frozenset())
        return PageChecks(ignored, PageAudit()) if ignored else NOTHING
    items = Items(slices)
    all_remarks = wanted.places == "all"
    problems, marked = vocabulary_problems(items, tables, context.base, all_remarks=all_remarks)
    problems += consistency_problems(context, items, marked)
    dropped: list[Finding] = []
    if any(one.code in DROPPED for one in context.findings):
        dropped = name_dropped_addresses(context, blanks)
    features: dict[str, bool] = {}
    at_home = _ROOT.search(context.url) is not None
    for profile in rules:
        found, eligible = profile.problems(items, tables.schema, problems, all_remarks=all_remarks, at_home=at_home)
        problems += without_what_was_dropped(found, dropped) if dropped else found
        features.update(eligible)
    for graph in graphs:
        problems += shape_problems(items, graph)
    audit = PageAudit(_types(items), tuple(sorted(features.items())))
    findings = _findings(context, items, problems, blanks)
    findings += [one for one in dropped if one.code not in wanted.ignore]
    findings += _written(context, frozenset(name for name, _ in audit.types))
    return PageChecks([*findings, *ignored], audit)


def _written(context: Context, types: frozenset[str]) -> list[Finding]:
    ignore = context.settings.audit.ignore
    return [one for one in written_mistakes(context, types) if one.code not in ignore]


def check_audit_settings(wanted: AuditSettings) -> None:
    """Read what the checks need. Raises `SettingsError` for a vocabulary, profile or shapes that cannot be read: at the
    start of a command, not on each of its pages."""
    if wanted.checks:
        _tools(wanted)


def rules_of(wanted: AuditSettings) -> list[ProfileRule]:
    """The rules of all profiles, by type. Raises `SettingsError` as `check_audit_settings` does."""
    found = [rule for profile in _tools(wanted).profiles for rule in profile.rules]
    return sorted(found, key=lambda rule: (rule.type, rule.by))


def left_to_the_complete_pass(wanted: AuditSettings) -> dict[str, tuple[str, ...]]:
    """By file of shapes: words of SHACL in it that are not checked while pages are read."""
    found = {name: shapes(name) for name in wanted.profiles if name.endswith(".ttl")}
    words = {name: tuple(dict.fromkeys(word for one in of for word in one.left_out)) for name, of in found.items()}
    return {name: some for name, some in words.items() if some}


class _Tools(NamedTuple):
    tables: Vocabularies
    profiles: tuple[Profile, ...]
    shapes: tuple[tuple[NodeShape, ...], ...]


_READY: dict[int, tuple[AuditSettings, _Tools]] = {}  # by the identity of the settings: one lookup a page


def _tools(wanted: AuditSettings) -> _Tools:
    """What the settings ask for, read once for a worker."""
    ready = _READY.get(id(wanted))
    if ready is None or ready[0] is not wanted:
        tools = _Tools(
            vocabularies(tuple(wanted.vocabularies)),
            profiles(tuple(name for name in wanted.profiles if not name.endswith(".ttl")), wanted.rules_folder),
            tuple(shapes(name) for name in wanted.profiles if name.endswith(".ttl")),
        )
        if len(_READY) > 8:
            _READY.clear()
        ready = _READY[id(wanted)] = (wanted, tools)
    return ready[1]


def _findings(context: Context, items: Items, problems: list[Problem], blanks: Mapping[str, int]) -> list[Finding]:
    audit = context.settings.audit
    if audit.ignore:
        problems = [problem for problem in problems if problem.code not in audit.ignore]
    if not problems:
        return []
    problems.sort(key=lambda problem: WEIGHT[problem.severity])
    problems = problems[:_MOST_FINDINGS]
    # To find a place takes as long as to find the defect, and most of what is found are remarks.
    remarks = [problem.severity for problem in problems].count("info") if audit.places == "defects" else 0
    return located(context, items, problems, blanks, remarks)


def _types(items: Items) -> tuple[tuple[str, int], ...]:
    counted: dict[str, int] = {}
    for item in items.by_subject.values():
        name = item.kind.type
        if name:
            counted[name] = counted.get(name, 0) + 1
    return tuple(counted.items())[:_MOST_TYPES]
