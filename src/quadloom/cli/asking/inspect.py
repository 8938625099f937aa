"""`quadloom inspect`: the data, links and findings of documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import wrap
from typing import Literal

import msgspec
import pyoxigraph as ox

from quadloom.cli.options import FailOn, Profiles
from quadloom.cli.session import session
from quadloom.cli.words import counted, cut, size
from quadloom.crawling.inspect.inspection import PREFIXES, Inspection, inspect_all
from quadloom.documents.checks.page import check_audit_settings
from quadloom.fetching.transport import ADVICE
from quadloom.model.finding import WEIGHT, FindingRecord

_WIDTH = 80
_MAX_ITEMS = 30
_MARKS = {"error": "✗ error", "warning": "! warning", "info": "· remark"}
Format = Literal["text", "turtle", "nquads", "jsonld", "json", "markdown"]


def inspect(
    source: str,
    *more: str,
    format: Format = "text",
    syntax: tuple[str, ...] = (),
    url: str = "",
    content_type: str | None = None,
    profile: Profiles = (),
    fail_on: FailOn = "never",
) -> int:
    """Show pages or files: verdict, data by syntax, links, findings with their place in the source. Stores nothing.

    Parameters
    ----------
    source
        a URL, a file, or - for standard input
    more
        further URLs and files: one process reads them all
    format
        text for people; turtle, nquads or jsonld print the statements; markdown the main part; json prints everything
    syntax
        read only this syntax, such as jsonld, or format of RDF, such as turtle; may be repeated
    url
        URL that a file stands for: its base and graph name
    content_type
        Content-Type that a file would have been sent with
    """
    s = session()
    sources = (source, *more)
    s.override({"transform.syntaxes": [*syntax], "audit.profiles": [*profile]})
    check_audit_settings(s.settings.audit)
    bodies = (sys.stdin.buffer.read(s.settings.limits.body_bytes) if one == "-" else one for one in sources)
    results = inspect_all(bodies, settings=s.settings, url=url, content_type=content_type)
    code = 0
    for number, (named, seen) in enumerate(zip(sources, results, strict=True)):
        if number and format == "text" and not s.json:
            s.write("")
        code = max(code, _shown(named, seen, format, last=number == len(sources) - 1))
        if fail_on != "never" and any(WEIGHT[one.severity] <= WEIGHT[fail_on] for one in seen.findings):
            code = max(code, 1)
    return code


def _shown(source: str, seen: Inspection, format: Format, *, last: bool) -> int:
    s = session()
    if s.json or format == "json":
        s.emit({**msgspec.to_builtins(seen, builtin_types=(bytes,)), "nquads": seen.nquads.decode("utf-8", "replace")})
    elif format == "text":
        for line in report(seen):
            s.write(line)
        if last:
            s.say(_next(source, seen))
    elif format == "markdown":
        s.write(seen.markdown.rstrip("\n"))
    else:
        s.write(serialize(seen.nquads, format))
    if seen.failure:
        if format != "text":
            s.say(f"{seen.url}: {seen.failure}")
        return 5 if seen.failure.startswith("its transformation") else 1
    return 0


def serialize(nquads: bytes, format: Literal["turtle", "nquads", "jsonld"]) -> str:
    """The statements in a syntax. Turtle has no graph names; all statements are in the graph of the page."""
    if format == "nquads" or not nquads:
        return nquads.decode("utf-8", "replace")
    quads = ox.parse(nquads, ox.RdfFormat.N_QUADS, lenient=True)  # pages may contain invalid IRIs
    if format == "jsonld":
        data = ox.serialize(quads, format=ox.RdfFormat.JSON_LD)
    else:
        used = {prefix: space for prefix, space in PREFIXES.items() if f"<{space}".encode() in nquads}
        data = ox.serialize((quad.triple for quad in quads), format=ox.RdfFormat.TURTLE, prefixes=used)
    return (data or b"").decode("utf-8")


def report(seen: Inspection) -> Iterator[str]:
    """The report as lines of at most 80 columns, if URLs allow it."""
    yield _headline(seen)
    for hop in seen.hops:
        yield f"  redirected ({hop.status}) to {hop.location}"
    if seen.failure:
        yield f"✗ failed: {seen.failure}"
    else:
        yield _verdict(seen)
    if seen.title:
        yield cut(f"title      {seen.title}" + (f" ({seen.language})" if seen.language else ""), _WIDTH)
    for name, value in (("noindex", seen.noindex), ("nofollow", seen.nofollow)):
        if value:
            yield f"! the page asks robots for {name}"
    if seen.items:
        yield from _table(seen)
    for name, complete in seen.features:
        yield f"{'✓' if complete else '✗'} rich result {name}: {'all that is required' if complete else 'incomplete'}"
    for finding in seen.findings:
        if not (seen.failure and finding.phase == "fetch" and seen.failure.endswith(finding.message)):  # said above
            yield from _finding(finding)
    if seen.reasons and not seen.quads:
        yield "why: " + "; ".join(seen.reasons)


def _headline(seen: Inspection) -> str:
    status = f"{seen.status} " if seen.status else ""
    kind = seen.media_type.partition(";")[0] or seen.kind
    robots = f" · robots: {seen.robots}" if seen.robots != "not asked" else ""
    cut = " (cut)" if seen.truncated else ""
    body = f"{kind} · {size(seen.size)}{cut}" if kind or seen.size else "no content"
    return f"{seen.url}  {status}{body}{robots}"


def _verdict(seen: Inspection) -> str:
    errors = sum(finding.severity == "error" for finding in seen.findings)
    warnings = sum(finding.severity == "warning" for finding in seen.findings)
    syntaxes = len({item.syntax for item in seen.items})
    parts = [
        f"{counted(len(seen.items), 'item')} in {counted(syntaxes, 'syntax', 'es')}" if seen.items else "no items",
        counted(seen.quads, "quad"),
        counted(len(seen.links), "link"),
    ]
    if errors:
        parts.append(counted(errors, "error"))
    if warnings:
        parts.append(counted(warnings, "warning"))
    mark = "✗ " if errors else "! " if warnings else "✓ " if seen.items else "· "
    return mark + " · ".join(parts)


def _table(seen: Inspection) -> Iterator[str]:
    rows = [
        (item.syntax, item.type or "-", item.id, ", ".join(_locals(item.properties)))
        for item in seen.items[:_MAX_ITEMS]
    ]
    head = ("syntax", "type", "id", "properties")
    widths = [min(max(len(row[column]) for row in (head, *rows)), 28) for column in range(3)]
    for row in (head, *rows):
        cells = [cut(row[column], widths[column]).ljust(widths[column]) for column in range(3)]
        yield cut("  ".join((*cells, row[3])), _WIDTH).rstrip()
    if len(seen.items) > _MAX_ITEMS:
        yield f"… and {len(seen.items) - _MAX_ITEMS} more (--json has all)"


def _locals(properties: tuple[str, ...]) -> list[str]:
    """Names without prefix, which the type already shows; of a full IRI the last part."""
    return list(
        dict.fromkeys(name[max(name.rfind(":"), name.rfind("/"), name.rfind("#")) + 1 :] for name in properties)
    )


def _finding(finding: FindingRecord) -> Iterator[str]:
    """What is wrong and where, folded at 80 columns; then the line of the source with a mark below the place."""
    yield from _folded(f"{_MARKS[finding.severity]} {finding.code}: {finding.message}")
    place = " · ".join(
        part
        for part in (
            finding.syntax or finding.phase,
            f"line {finding.line}" + (f":{finding.column}" if finding.column else "") if finding.line else "",
            finding.path,
        )
        if part
    )
    yield cut(f"    {place}", _WIDTH)
    if finding.excerpt:
        start = max(0, finding.caret - 40)
        yield f"    | {finding.excerpt[start : start + _WIDTH - 6]}"
        if finding.caret:
            yield "    | " + " " * (finding.caret - 1 - start) + "^"
    if finding.fix:
        yield from _folded(f"fix: {finding.fix}", "    ")


def _folded(text: str, indent: str = "") -> list[str]:
    return wrap(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _next(source: str, seen: Inspection) -> str:
    if seen.robots == "disallowed":
        return 'next: robots.txt disallows this page; if the site is yours, set [[site]] robots = "ignore"'
    if seen.status >= 400:
        return f"next: the server answered with {seen.status}; check the address in a browser"
    if seen.failure:
        advice = ADVICE.get(seen.failure.partition(":")[0])
        return f"next: {advice}" if advice else "next: to look for common causes: `quadloom check`"
    keeps = f" · to store them: `quadloom crawl {source}`" if seen.status else ""
    return f"next: to print the quads: --format turtle{keeps}"
