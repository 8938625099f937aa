"""INDEX, the part that describes: what the warehouse states about pages and visits, from the catalog's rows alone."""

from __future__ import annotations

from quadloom.documents.syntaxes.terms import XSD, iri, literal
from quadloom.model.outcome import PageRow
from quadloom.model.timestamps import iso_time
from quadloom.model.url import site_of

PAGES = "urn:quadloom:pages"
GONE = "urn:quadloom:gone"  # of a page: since when it is not found, though its statements are still here
VISITS = "urn:quadloom:visits"  # what came of every visited URL, with `index.visits`
_PROV = "http://www.w3.org/ns/prov#"
_DCTERMS = "http://purl.org/dc/terms/"


def visit_description(row: PageRow, source: str) -> bytes:
    """What is known of the last visit to a URL, whatever came of it, as statements in the graph `VISITS`: headers as
    sent, failures and denials with their reasons, redirects. From the catalog alone, so it can be written at any time.
    """
    subject = iri(row.href)
    if subject is None:
        return b""
    kind, _, reason = row.reason.partition(": ")
    parts = [
        f'urn:quadloom:outcome> "{row.outcome}"',
        f'urn:quadloom:visitedAt> "{iso_time(row.fetched_at)}"^^<{XSD}dateTime>',
        f"urn:quadloom:site> {literal(site_of(row.host))}",
        f'urn:quadloom:robots> "{"disallowed" if kind == "robots" else "allowed"}"',
    ]
    if row.status:
        parts.append(f'urn:quadloom:status> "{row.status}"^^<{XSD}integer>')
    if reason:
        parts.append(f"urn:quadloom:reason> {literal(row.reason)}")
    if row.kind == "redirect" and (target := iri(row.final_url) if row.final_url else None):
        parts.append(f"urn:quadloom:redirectsTo> {target}")
    if row.body_bytes:
        parts.append(f'urn:quadloom:contentLength> "{row.body_bytes}"^^<{XSD}integer>')
    sent = {"contentType": row.sent_type, "contentLanguage": row.sent_language, "etag": row.etag}
    sent["lastModified"] = row.last_modified
    parts += [f"urn:quadloom:{name}> {literal(value)}" for name, value in sent.items() if value]
    found_on = iri(source) if source else None
    if found_on:
        parts.append(f"urn:quadloom:foundOn> {found_on}")
    return "".join(f"{subject} <{part} <{VISITS}> .\n" for part in parts).encode("utf-8", "replace")


def page_description(row: PageRow, status: int, source: str) -> bytes:
    """What the warehouse knows of a page's present version, as statements in the graph `PAGES`; see
    docs/reference/vocabulary.md. `source` is the page on which it was found first.

    A statement costs some 15 µs of CPU and 200 bytes, so there are few: what a page says about itself (language,
    description …) is in its own graph. Nothing here changes while a page stays the same; its rank and schedule are
    added by `crawling/ingest/index/describe.py`. All of it can be derived from catalog and archive, so `rebuild` gives
    the same."""
    subject = iri(row.graph)
    if subject is None:
        return b""
    when = iso_time(row.changed_at)
    head = f"{subject} <"
    tail = f" <{PAGES}> .\n"
    parts = [
        f'{_PROV}generatedAtTime> "{when}"^^<{XSD}dateTime>',
        f'urn:quadloom:digest> "{row.quads_digest.hex()}"',
        f'urn:quadloom:kind> "{row.kind}"',
        f"urn:quadloom:site> {literal(site_of(row.host))}",
        f'urn:quadloom:status> "{status}"^^<{XSD}integer>',
    ]
    if row.title:
        parts.append(f"{_DCTERMS}title> {literal(row.title, row.language)}")
    found_on = iri(source) if source else None
    if found_on:
        parts.append(f"urn:quadloom:foundOn> {found_on}")
    end = tail + head
    return f"{head}{end.join(parts)}{tail}".encode("utf-8", "replace")
