"""Render the sites of `quadloom demo` into the data file of the wheel, `src/quadloom/cli/demo_sites/sites.json.gz`.

    python -m quadloom_lab.fakeweb.demo_data

Every URL in the pages is requested from the generator once. URLs are rendered without a port; the demo's server inserts
its own. Run it again after a change of the generator; a test compares the file with what the generator says today.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import deque
from html import unescape
from urllib.parse import urljoin, urlsplit

import msgspec

from quadloom.cli.demo_sites.server import SITES, StoredResponse, StoredSites
from quadloom_lab.fakeweb.exchange import FakeRequest, FakeResponse
from quadloom_lab.fakeweb.web import RDF_TYPES, FakeWeb, demo_web

_ALWAYS = ("/", "/robots.txt", "/sitemap.xml", "/opensearch.xml", "/search", "/search.rss")
_REFERENCE = re.compile(r"""(?:href|src)=["']([^"']+)["']|(http://[^\s"'<>\\]+)""")


def collect() -> StoredSites:
    """All responses of the demo's web at revision 0, in the order of hosts and targets."""
    web = demo_web()
    queue = deque(f"{base}{path}" for base in web.layout.bases for path in _ALWAYS)
    sites: dict[str, dict[str, StoredResponse]] = {host.name: {} for host in web.hosts}
    seen: set[str] = set()
    while queue:
        url = queue.popleft().partition("#")[0]
        parts = urlsplit(url)
        if url in seen or parts.netloc not in sites or "{" in url:  # a search template is not a URL
            continue
        seen.add(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        answer = web.answer(FakeRequest(parts.netloc, target))
        if answer.status == 404:
            continue
        stored = _stored(web, parts.netloc, target, answer)
        sites[parts.netloc][target] = stored
        queue.extend(stored.alternates.values())
        queue.append(urljoin(url, stored.headers.get("Location", "")))
        queue.extend(urljoin(url, unescape(found[1] or found[2])) for found in _REFERENCE.finditer(stored.text))
    missing = web.answer(FakeRequest(web.hosts[0].name, "/no-such-page"))
    in_order = {name: dict(sorted(responses.items())) for name, responses in sites.items()}
    return StoredSites(in_order, StoredResponse(missing.status, dict(missing.headers), missing.body.decode()))


def _stored(web: FakeWeb, host: str, target: str, answer: FakeResponse) -> StoredResponse:
    alternates = {}
    if answer.status == 303:
        for media_type in RDF_TYPES:
            alternates[media_type] = web.answer(FakeRequest(host, target, accept=media_type)).header("Location")
    try:
        text, data = answer.body.decode(), b""
    except UnicodeDecodeError:
        text, data = "", answer.body
    return StoredResponse(answer.status, dict(answer.headers), text, data, alternates)


def encode(sites: StoredSites) -> bytes:
    """The content of the data file before compression, whose bytes depend on the version of zlib."""
    return msgspec.json.format(msgspec.json.encode(sites), indent=1)


def main() -> int:
    sites = collect()
    SITES.write_bytes(gzip.compress(encode(sites), 9, mtime=0))
    count = sum(len(responses) for responses in sites.sites.values())
    sys.stdout.write(f"{count} responses of {len(sites.sites)} sites in {SITES}, {SITES.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
