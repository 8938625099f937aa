"""What the source says and the statements no longer show: values escaped twice, empty values, keywords without @,
descriptions inside templates, and addresses of the page that contradict each other.

Looked for in the source itself, so each finding has its line. Pages without a sign of it pay nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from quadloom.documents.checks.locating import placed
from quadloom.documents.syntaxes.jsonld.source_positions import jsonld_blocks
from quadloom.documents.syntaxes.jsonld.terms import IN_TEMPLATE, SUSPICIOUS, TEMPLATE_TYPES
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.finding import Finding
from quadloom.model.url import host_of, resolve

WRITTEN_SIGNS = frozenset((SUSPICIOUS, IN_TEMPLATE))
"""Signs of a page without which only its addresses are compared."""
_MOST_PLACES = 200  # values of one block
_BEFORE = 4000  # bytes in which the key of a value is looked for
_ENTITY = re.compile(rb"&(?:amp|lt|gt|quot|apos|nbsp|#\d{2,5}|#[xX][0-9a-fA-F]{2,5});")
_KEY = re.compile(rb'"([^"\\\n]{1,60})"\s*:\s*(?=["\[])')
_EMPTY = re.compile(rb'"([A-Za-z][\w:-]{0,60})"\s*:\s*"\s*"')
_BARE = re.compile(rb'"(type|id)"\s*:\s*"([A-Z][A-Za-z]{2,40})"')
_TYPE = re.compile(r'"@?type"\s*:\s*"(?:https?://schema\.org/)?([A-Za-z]+)"')
_PLAIN_CONTEXT = re.compile(rb'"@context"\s*:\s*"https?://(?:www\.)?schema\.org/?"')
_INDEX = re.compile(r"/(?:index|default)\.\w{3,5}\Z")
_TAKES_HTML = frozenset(("text", "description", "articleBody", "reviewBody", "recipeInstructions", "transcript"))


def written_mistakes(context: Context, types: frozenset[str]) -> list[Finding]:
    """A finding for each kind of mistake and property. `types`: local names of the page's items."""
    found = list(_addresses(context))
    if SUSPICIOUS in context.signs:
        blocks = jsonld_blocks(context)
        found += _entities(context, blocks)
        found += _empty(context, blocks)
        found += _bare_keywords(context, blocks)
    if IN_TEMPLATE in context.signs:
        found += _templates(context, types)
    return found


def _addresses(context: Context) -> Iterator[Finding]:
    """og:url and rel=canonical both name the page's one address."""
    canonical = context.facts.canonical
    written = next((content for name, content in context.facts.metas if name == "og:url"), "") if canonical else ""
    if not written or _address_key(canonical) == _address_key(address := resolve(written, context.base) or written):
        return
    finding = Finding(
        "canonical-mismatch",
        "og:url is not the page's canonical address",
        advice="write the same address in og:url and in rel=canonical",
        syntax="opengraph",
        path="og:url",
        found=address[:120],
        expected=canonical[:120],
    )
    if host_of(address) or host_of(canonical):
        yield placed(context, finding, context.utf8.find(b"og:url"))


def _address_key(url: str) -> str:
    url = url.partition("#")[0].partition("://")[2]
    return _INDEX.sub("", url.removeprefix("www.")).rstrip("/")


def _entities(context: Context, blocks: list[tuple[int, int]]) -> Iterator[Finding]:
    """Scripts are not decoded: `&amp;` stays as it is, in names and in addresses."""
    source = context.utf8
    named: set[str] = set()
    for start, end in blocks:
        at = start
        for _ in range(_MOST_PLACES):
            entity = _ENTITY.search(source, at, end)
            if entity is None:
                break
            opening = source.rfind(b'"', start, entity.start()) + 1
            closing = source.find(b'"', entity.end(), end)
            at = closing if closing >= 0 else end
            value = source[opening:at].decode("utf-8", "replace")
            if value in named:
                continue  # an image that is also its own @id and url
            name = _key_before(source, max(start, opening - _BEFORE), opening)
            named.add(value)
            if not name or name in named or name in _TAKES_HTML:
                continue
            named.add(name)
            yield placed(
                context,
                Finding(
                    "value-escaped",
                    f"{name} is escaped as HTML: readers show {entity[0].decode()} as it is",
                    advice="write the character itself; JSON in a script needs no HTML entities",
                    syntax="jsonld",
                    path=name,
                    found=value[:120],
                    expected=unescape(value)[:120],
                ),
                entity.start(),
            )


def _key_before(source: bytes, start: int, end: int) -> str:
    """The key of the text or list that ends there."""
    for begin in (max(start, end - 120), start):  # most keys are near
        keys = _KEY.findall(source, begin, end)
        if keys:
            return str(keys[-1], "utf-8", "replace")
    return ""


def _empty(context: Context, blocks: list[tuple[int, int]]) -> Iterator[Finding]:
    named: set[str] = set()
    for start, end in blocks:
        for found in _EMPTY.finditer(context.utf8, start, end):
            name = found[1].decode()
            if name in named:
                continue
            named.add(name)
            yield placed(
                context,
                Finding(
                    "value-empty",
                    f"{name} is empty",
                    advice=f"leave {name} out if there is no value",
                    syntax="jsonld",
                    path=name,
                    found='""',
                    expected="a value, or no property",
                ),
                found.start(),
            )


def _bare_keywords(context: Context, blocks: list[tuple[int, int]]) -> Iterator[Finding]:
    """`"type"` is `@type` only to readers that load schema.org's context; other contexts may define it."""
    for start, end in blocks:
        source = context.utf8
        first = next((one for one in _BARE.finditer(source, start, end) if not _has_type(source, one.start())), None)
        if first is None or not _PLAIN_CONTEXT.search(source, start, end):
            continue
        name = first[1].decode()
        yield placed(
            context,
            Finding(
                "jsonld-keyword",
                f"{name} without @: most readers see no {name} here",
                advice=f'write "@{name}"',
                syntax="jsonld",
                path=name,
                found=name,
                expected=f"@{name}",
            ),
            first.start(),
        )


def _has_type(source: bytes, place: int) -> bool:
    """Whether the object around a key has @type as well: then `type` is a property that somebody invented."""
    begin, end = source.rfind(b"{", 0, place), source.find(b"}", place)
    return source.find(b'"@type"', max(0, begin), end if end >= 0 else len(source)) >= 0


def _templates(context: Context, types: frozenset[str]) -> Iterator[Finding]:
    """JSON-LD in a script that no reader runs or reads, if the page does not describe the same elsewhere."""
    elements = context.all_elements
    scripts = elements.named("script")
    at = 0
    for script, (media_type,) in zip(scripts, elements.values(scripts, ("type",)), strict=True):
        if media_type is None or media_type.strip().lower() not in TEMPLATE_TYPES:
            continue
        text = elements.text(script)
        lost = [name for name in dict.fromkeys(_TYPE.findall(text)) if name not in types]
        if "ld+json" not in text or not lost:
            continue
        place = context.utf8.find(text.encode("utf-8", "replace"), at)
        if place >= 0:
            at = place + 1
            place = context.utf8.find(b"ld+json", place)
        finding = Finding(
            "jsonld-in-template",
            f'JSON-LD stands inside a script of type="{media_type}", so nobody reads it: {", ".join(lost[:3])}',
            "error",
            advice="move the JSON-LD out of the template, into the page itself",
            syntax="jsonld",
            path=f"{lost[0]} in a template",
            type=lost[0],
            found=lost[0],
        )
        yield placed(context, finding, place)
        return
