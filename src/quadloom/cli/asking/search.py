"""`quadloom search`: find pages by words, types and sites, also while a crawl runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import asdict

from quadloom.asking.search import MARKS, for_json, search_request, why_nothing
from quadloom.asking.search import search as find
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.found import FoundThings, find_things
from quadloom.asking.things.found import for_json as thing_for_json
from quadloom.cli.options import FailEmpty, Sites, Types
from quadloom.cli.session import Session, harmless, session
from quadloom.errors import NothingFound
from quadloom.model.timestamps import day
from quadloom.stores.protocols.text import Hit, SearchAnswer

_NOTHING_HINT = "try fewer or shorter words, or light* to match the start of a word"


def search(
    *words: str,
    type: Types = (),
    vocabulary: tuple[str, ...] = (),
    site: Sites = (),
    language: tuple[str, ...] = (),
    kind: tuple[str, ...] = (),
    since: str = "",
    until: str = "",
    limit: int = 10,
    offset: int = 0,
    facets: bool = False,
    exact: bool = False,
    things: bool = False,
    gone: bool = False,
    explain: bool = False,
    as_sparql: bool = False,
    fail_empty: FailEmpty = False,
) -> None:
    """Find pages by words: `opera "open air" concert* title:gala -cancelled`.

    Pages with all words come first. If they are few, other forms, the nearest spelling and words that begin with the
    last word are searched too, and then pages with some of the words, the best first. The number of pages found counts
    those with all words, if there are any.

    Parameters
    ----------
    words
        words, "phrases", prefix*, field:word, +word to require, -word to exclude, after:2026-01-31, before:2026
    vocabulary
        only pages that use this ontology: schema, foaf or a namespace
    language
        only pages in this language
    kind
        only documents of this kind: html, rss, turtle …
    since
        fetched on this date or later
    until
        fetched on this date or before
    limit
        number of hits to print
    offset
        number of hits to skip
    facets
        also count hits by type, vocabulary, site, language, kind and year
    exact
        only pages with all words exactly as written: no other forms, no other spellings, no fewer words
    things
        print things with these words instead of pages: events, people, products …
    gone
        include pages that their server no longer has
    explain
        print the parts of each score
    as_sparql
        print the equivalent SPARQL query instead of searching
    """
    s = session()
    request = search_request(
        " ".join(words),
        type=type,
        vocabulary=vocabulary,
        site=site,
        language=language,
        kind=kind,
        since=since,
        until=until,
        limit=limit,
        offset=offset,
        facets=facets or s.json,
        exact=exact,
        gone=gone,
        explain=explain,
    )
    if as_sparql:
        from quadloom.asking.sparql.text_patterns import as_sparql as sparql_of  # with the query engine: .02 s

        s.write(sparql_of(request))
        return
    with s.read() as warehouse:
        stores = warehouse.stores
        if stores.text.is_outdated:
            from quadloom.cli.asking.status import OUTDATED  # with what steers a crawl: .01 s

            s.say(OUTDATED)
        if things:
            _print_things(s, find_things(stores.text, stores.quads, request), fail_empty=fail_empty)
            return
        answer = find(stores.text, request, stores.catalog)
        reasons = [] if answer.total else why_nothing(stores.text, request)
    _print_hits(s, answer, reasons)
    if not answer.total and fail_empty:
        raise NothingFound("no page matches", hint=_NOTHING_HINT)


def _print_things(s: Session, found: FoundThings, *, fail_empty: bool) -> None:
    if s.json:
        s.emit({"ok": True, "things": [asdict(thing_for_json(thing)) for thing in found], "unread": found.unread})
    else:
        rows = [
            (thing.label or shorten(thing.iri), " ".join(map(shorten, thing.types[:2])), thing.iri, thing.pages[0])
            for thing in found
        ]
        s.table(["thing", "type", "iri", "page"], rows)
        for page in found.unread:
            s.say(f"not all statements of {page} were read; narrow the search with --site or more words")
        s.say(f"{len(found)} found; to see what all pages state about one: `quadloom show IRI`")
    if not found and fail_empty:
        raise NothingFound("no thing matches", hint=_NOTHING_HINT)


def _print_hits(s: Session, answer: SearchAnswer, reasons: Sequence[str] = ()) -> None:
    """Print an answer. `reasons`: the filters that no page passes."""
    if s.json:
        s.emit(_record(answer))
        return
    for note in reasons or _notes(answer):
        s.say(note)
    if s.is_terminal:
        for hit in answer.hits:
            _print_hit(s, hit)
    else:
        s.table(["title", "type", "site", "date", "page"], [_hit_row(hit) for hit in answer.hits])
        for hit in answer.hits:
            _print_explanation(s, hit)
    for name, values in answer.facets.items():
        if values:
            s.say(f"{name}: " + ", ".join(f"{value} {count}" for value, count in values[:8]))
    s.say(f"{answer.total} found in {answer.seconds * 1000:.0f} ms")
    if not answer.total:
        s.say(
            "hint: to list the types, sites and kinds in use: `quadloom stats`" if reasons else f"hint: {_NOTHING_HINT}"
        )


def _record(answer: SearchAnswer) -> dict[str, object]:
    hits = []
    for hit in answer.hits:
        hits.append(asdict(for_json(hit)))
        del hits[-1]["excerpt"]
    return {
        "ok": True,
        "total": answer.total,
        "took_ms": answer.seconds * 1000,
        "hits": hits,
        "facets": answer.facets,
        "corrections": [asdict(correction) for correction in (*answer.corrections, *answer.offers)],
        "missing": answer.missing,
        "most_words": answer.most_words,
    }


def _notes(answer: SearchAnswer) -> list[str]:
    """How the words were read, if not as they are written."""
    notes = [
        f"Showing results for {item.used}: no page has {item.asked}. To search for it as written: --exact"
        for item in answer.corrections
    ]
    corrected = {item.asked for item in answer.corrections}
    notes += (f"No page has {word}." for word in answer.missing if word not in corrected)
    notes += (f"Did you mean {item.used}?" for item in answer.offers)
    if answer.most_words and answer.total:
        notes.append("Some of these pages have only some of the words.")
    return notes


def _hit_row(hit: Hit) -> tuple[str, str, str, str, str]:
    types = " ".join(shorten(name) for name in hit.types[:2])
    date = day(hit.fetched_at)
    return hit.title or hit.id, types, hit.site, date, hit.id


def _print_hit(s: Session, hit: Hit) -> None:
    """Print title, address and snippet, as search engines do; the address is never wrapped."""
    from rich.padding import Padding  # .015 s, for which a pipe need not wait
    from rich.text import Text

    title, types, _site, date, page = _hit_row(hit)
    s.out.print(Text(harmless(title), "bold"), Text(f"  {harmless(types)}  {date}", "dim"))
    if hit.gone:
        s.out.print(Text("  gone: the server no longer has this page", "yellow"))
    s.out.print(Text("  " + harmless(page), "cyan"), soft_wrap=True)
    for other in hit.also_at:
        s.out.print(Text("  also at " + harmless(other), "dim"), soft_wrap=True)
    if hit.lacks:
        s.out.print(Text("  without " + harmless(", ".join(hit.lacks)), "dim"), soft_wrap=True)
    if hit.snippet:
        opening, closing = MARKS
        text = Text()
        for index, part in enumerate(re.split(f"[{opening}{closing}]", hit.snippet)):
            text.append(harmless(part.replace("\n", " ")), "bold yellow" if index % 2 else "")
        s.out.print(Padding(text, (0, 0, 0, 2)))
    _print_explanation(s, hit)


def _print_explanation(s: Session, hit: Hit) -> None:
    for part in hit.explanation:
        s.print(f"    {'×' if part.factor else '+'} {part.value:8.3f}  {part.what}", "dim")
    if hit.explanation:
        s.print(f"    = {hit.score:8.3f}", "dim")
