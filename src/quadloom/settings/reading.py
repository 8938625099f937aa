"""Settings of what is read: which pages, how politely, within which limits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quadloom.settings.fields import ABOVE_0, FROM_0, FROM_1, SHARE, Bytes, Length, Seconds, doc

# Standard values of crawl.strategies; `quadloom.documents.extract` says what each of them follows.
STRATEGY_NAMES = ("all", "same-site", "external", "feeds", "seealso", "vocabulary", "sitemaps")
OWN_PER_SITE = 16  # requests at the same time to a host of the user's own


class CrawlSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to read, and how far."""

    contact: Annotated[str, doc("URL or mail address shown to the sites you visit, in the user agent and From")] = ""
    seeds: Annotated[list[str], doc("URLs to start from when none is given on the command line")] = []
    scope: Annotated[
        Literal["page", "host", "site", "any"],
        doc("how far links are followed from the seeds: that page only, its host, its registered domain, anywhere"),
    ] = "site"
    include: Annotated[list[str], doc("globs, or `re:` RE2 expressions: follow only URLs matching one of them")] = []
    exclude: Annotated[list[str], doc("globs, or `re:` RE2 expressions: never follow URLs matching one of them")] = []
    max_depth: Annotated[int, doc("most links away from a seed, 0 = seeds only"), FROM_0] = 32
    max_pages: Annotated[int, doc("stop after this many pages, 0 = no limit"), FROM_0] = 0
    max_pages_per_host: Annotated[
        int, doc("most pages of one host; errors and near-duplicates count more than one; 0 = no limit"), FROM_0
    ] = 100_000
    max_seconds: Annotated[float, doc("stop after this many seconds, 0 = no limit"), FROM_0] = 0.0
    max_wait: Annotated[Seconds, doc("end if no page may be visited within this many seconds"), FROM_0] = 60.0
    order: Annotated[
        Literal["breadth-first", "importance", "random"], doc("which of the known but unread pages is read first")
    ] = "breadth-first"
    guided_share: Annotated[
        float,
        doc(
            "share of first reads that go to the most important unread page of a host, by the links read so far; the"
            " others go breadth-first. Only with the order breadth-first"
        ),
        SHARE,
    ] = 0.5
    strategies: Annotated[
        list[str],
        doc(f"link strategies: {', '.join(STRATEGY_NAMES)}, or a path to a .rq file"),
    ] = msgspec.field(default_factory=lambda: ["all"])
    skip_types: Annotated[
        list[str],
        doc("globs of media types whose bodies are not read, besides pictures, audio, video, fonts and installers"),
    ] = []
    read_types: Annotated[
        list[str],
        doc(
            "globs of media types whose bodies are read although they are not by default, such as image/* for a plug-in"
        ),
    ] = []
    sitemaps: Annotated[bool, doc("read the sitemaps named in robots.txt")] = True
    site_search: Annotated[
        int,
        doc(
            "most requests to the own search of each host that is crawled, to find pages that no page links to; 0 ="
            " leave it alone"
        ),
        FROM_0,
    ] = 0
    transport: Annotated[
        str,
        doc(
            "what answers requests: `http:` = the web; `replay:DIRECTORY` = the archive of the warehouse in DIRECTORY,"
            " the newest response of each URL, or with `?until=2026-01-31` the newest at that time; nobody is asked"
        ),
    ] = "http:"
    browser: Annotated[
        Literal["never", "auto", "always"],
        doc(
            "run the scripts of HTML pages in Chromium: never; only of pages that are empty without them; of all."
            " Needs the extra `browser`, and about a second of CPU for each such page"
        ),
    ] = "never"
    browser_path: Annotated[str, doc("the Chromium to run; empty = the one on the path")] = ""
    user_agent: Annotated[str, doc("product token, sent to servers and looked up in robots.txt")] = "Quadloom"
    sign: Annotated[
        Literal["never", "asked", "always"],
        doc(
            "sign requests (RFC 9421, Web Bot Auth): never; to servers that ask by Accept-Signature; to all. Needs the"
            " extra `sign`, crawl.sign_keys and web.public_url, where the public keys are"
        ),
    ] = "never"
    sign_keys: Annotated[str, doc("folder of Ed25519 keys (*.pem): the newest signs, all are published")] = ""
    sign_key_age: Annotated[Length, doc("age at which a key is neither used nor published any more")] = "365d"
    workers: Annotated[int, doc("transform processes, 0 = one less than there are cores, at least one"), FROM_0] = 0
    batch: Annotated[int, doc("most pages written in one transaction"), FROM_1] = 128
    batch_seconds: Annotated[Seconds, doc("longest wait before a smaller batch is written, seconds"), FROM_0] = 0.25
    in_flight: Annotated[
        int, doc("most pages in progress at a time, from the queue to the transaction (back-pressure)"), FROM_1
    ] = 600
    failpoint: Annotated[str, doc("for tests: end the process at this point of the write order")] = ""


class PolitenessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often and how hard hosts may be asked."""

    robots: Annotated[Literal["obey", "ignore"], doc("what to do with robots.txt, meta robots and X-Robots-Tag")] = (
        "obey"
    )
    delay: Annotated[Seconds, doc("least time between two requests to one host, seconds"), FROM_0] = 1.0
    ip_delay: Annotated[
        Seconds,
        doc("least time between two requests to one IP address, seconds; at most `delay`, if only that is set"),
        FROM_0,
    ] = 0.2
    per_site: Annotated[int, doc("requests to one host at the same time"), FROM_1] = 1
    adaptive: Annotated[
        float,
        doc("wait at least this many times the last response time; 0 = do not; 0 if `delay` is set and this is not"),
        FROM_0,
    ] = 2.0
    max_delay: Annotated[Seconds, doc("longest adaptive delay, seconds"), FROM_0] = 30.0
    max_crawl_delay: Annotated[Seconds, doc("a longer Crawl-delay is shortened to this many seconds"), FROM_0] = 3600.0
    backoff: Annotated[
        Seconds, doc("first pause after 429, 503 or a dead host without Retry-After, seconds"), FROM_0
    ] = 10.0
    max_backoff: Annotated[Seconds, doc("longest pause, seconds; pauses double up to this, with jitter"), FROM_0] = (
        21600.0
    )
    retries: Annotated[int, doc("further attempts to read a page after a transient failure"), FROM_0] = 3
    robots_ttl: Annotated[Seconds, doc("seconds a robots.txt stays valid"), FROM_0] = 86400.0
    robots_missing_ttl: Annotated[Seconds, doc("seconds that a missing robots.txt (4xx) is remembered"), FROM_0] = (
        86400.0
    )
    robots_error_ttl: Annotated[
        Seconds, doc("seconds until an unavailable robots.txt (5xx, no answer) is requested again"), FROM_0
    ] = 1800.0


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that a response, a document or a query may take."""

    connections: Annotated[int, doc("open sockets of the fetcher"), FROM_1] = 300
    total_seconds: Annotated[
        Seconds, doc("a whole request including name resolution and redirects, seconds"), ABOVE_0
    ] = 30.0
    connect_seconds: Annotated[Seconds, doc("connection set-up including TLS, seconds"), ABOVE_0] = 10.0
    dns_seconds: Annotated[Seconds, doc("name resolution, seconds"), ABOVE_0] = 5.0
    dns_ttl: Annotated[Seconds, doc("seconds an address stays cached"), FROM_0] = 600.0
    dns_negative_ttl: Annotated[Seconds, doc("seconds a failed name stays cached"), FROM_0] = 60.0
    low_speed_bytes: Annotated[Bytes, doc("bytes per second below which a transfer counts as stalled"), FROM_0] = 1024
    low_speed_seconds: Annotated[Seconds, doc("a stalled transfer is ended after this many seconds"), ABOVE_0] = 10.0
    body_bytes: Annotated[Bytes, doc("a decoded body, bytes; a longer one is truncated and marked"), FROM_1] = (
        10 * 1024 * 1024
    )
    header_bytes: Annotated[Bytes, doc("all response headers together, bytes"), FROM_1] = 64 * 1024
    header_count: Annotated[int, doc("number of response headers"), FROM_1] = 100
    decode_ratio: Annotated[
        float, doc("ratio of decoded to transferred bytes, checked after the first decoded MiB"), ABOVE_0
    ] = 200.0
    large_bytes: Annotated[Bytes, doc("a body with a longer Content-Length is not read, bytes"), FROM_1] = (
        50 * 1024 * 1024
    )
    redirects: Annotated[int, doc("redirects followed in a row"), FROM_0] = 10
    robots_bytes: Annotated[Bytes, doc("bytes of a robots.txt that are read; the rest is ignored"), FROM_1] = 500 * 1024
    render_seconds: Annotated[Seconds, doc("running the scripts of one page, seconds"), ABOVE_0] = 20.0
    render_requests: Annotated[int, doc("requests of the scripts of one page"), FROM_0] = 60
    render_bytes: Annotated[Bytes, doc("bytes that the scripts of one page may request"), FROM_1] = 20 * 1024 * 1024
    transform_seconds: Annotated[
        Seconds,
        doc("detecting and transforming one page, seconds; waiting for a processor is not counted"),
        ABOVE_0,
    ] = 10.0
    transform_bytes: Annotated[Bytes, doc("memory of a transform process, bytes"), FROM_1] = 768 * 1024 * 1024
    quads_per_page: Annotated[
        int, doc("statements stored per page; more than that is reported as a finding"), FROM_0
    ] = 200_000
    quad_bytes_per_page: Annotated[
        Bytes, doc("statements stored per page, bytes; what is left out is reported as a finding"), FROM_1
    ] = 96 * 1024 * 1024
    amplification: Annotated[
        float,
        doc("statements of a page, beyond the first 8 MiB: at most this many times the bytes of its document"),
        ABOVE_0,
    ] = 30.0
    long_terms_per_page: Annotated[
        int, doc("different names and values of more than 1,024 characters per page"), FROM_0
    ] = 5_000
    iri_chars: Annotated[int, doc("length of an IRI; statements with a longer one are left out"), FROM_1] = 8192
    quads_per_host: Annotated[
        int,
        doc("statements stored per host, 0 = no limit; larger pages use up crawl.max_pages_per_host faster"),
        FROM_0,
    ] = 50_000_000
    quad_bytes_per_host: Annotated[
        Bytes, doc("the same for the bytes of all statements of a host, 0 = no limit"), FROM_0
    ] = 8 * 1024 * 1024 * 1024
    links_per_page: Annotated[int, doc("links stored per page"), FROM_0] = 20_000
    text_chars: Annotated[int, doc("main text stored per page, characters"), FROM_0] = 500_000
    literal_chars: Annotated[
        int, doc("words of a page's data in the text index, characters; more is reported as a finding"), FROM_0
    ] = 10_000_000
    context_loads: Annotated[int, doc("remote JSON-LD contexts loaded per document"), FROM_0] = 8
    context_bytes: Annotated[Bytes, doc("size of a remote JSON-LD context, bytes"), FROM_1] = 1024 * 1024
    query_seconds: Annotated[Seconds, doc("time of a SPARQL query, seconds"), ABOVE_0] = 30.0
    query_bytes: Annotated[
        Bytes, doc("memory of a query process, bytes; opening the quads takes 305 MiB of it"), FROM_1
    ] = 1024 * 1024 * 1024
    query_rows: Annotated[int, doc("rows of a result, 0 = no limit"), FROM_0] = 1_000_000
    query_result_bytes: Annotated[Bytes, doc("size of a result, bytes"), FROM_1] = 256 * 1024 * 1024
    query_length: Annotated[Bytes, doc("length of a query, bytes"), FROM_1] = 64 * 1024
    query_nesting: Annotated[int, doc("depth of nested brackets and groups in a query"), FROM_1] = 100
    query_patterns: Annotated[int, doc("text patterns (`ql:matches`) in a query"), FROM_1] = 16
    query_hits: Annotated[int, doc("hits of all text patterns of a query together"), FROM_1] = 20_000
    query_hit_bytes: Annotated[Bytes, doc("length of the URLs of these hits together, bytes"), FROM_1] = 4 * 1024 * 1024


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which addresses may be visited."""

    allow: Annotated[list[str], doc("CIDR blocks that may be visited although they are not public")] = []
    ports: Annotated[list[int], doc("ports that may be visited; empty = all")] = []
    hosts: Annotated[
        dict[str, str],
        doc("addresses of host names that DNS does not know, as in a hosts file; `*.x` matches all names below x"),
    ] = {}
    authorities: Annotated[
        str, doc("PEM file of the certificate authorities to trust, instead of the machine's own")
    ] = ""


class FetchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The way out of this network."""

    proxy: Annotated[
        str,
        doc(
            "outgoing proxy for all that is fetched: `http://host:port`, `socks5://host:port`, or `$HTTPS_PROXY` for "
            "what that variable says; empty = none, and no variable is looked at"
        ),
    ] = ""
    proxy_login: Annotated[
        str, doc("file whose first line is `user:password` for the proxy, or `$NAME` of a variable that holds it")
    ] = ""
    proxy_resolves: Annotated[
        bool,
        doc(
            "leave names to the proxy, as `socks5h://` does: for networks without DNS. Private addresses behind a name "
            "are then for the proxy to refuse"
        ),
    ] = False


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exceptions for hosts that match a glob; everything not given stays as above."""

    match: Annotated[str, doc("glob over host names")]
    own: Annotated[
        bool,
        doc(
            "a host of your own: no pauses, not even its Crawl-delay, and 16 requests at the same time; `delay` and "
            "`per_site` of this table still hold, and so does the rest of robots.txt"
        ),
    ] = False
    delay: Annotated[Annotated[float, FROM_0] | None, doc("seconds between two requests")] = None
    per_site: Annotated[Annotated[int, FROM_1] | None, doc("requests at the same time")] = None
    max_pages: Annotated[Annotated[int, FROM_0] | None, doc("most pages, 0 = no limit")] = None
    robots: Annotated[
        Literal["obey", "ignore"] | None,
        doc("what to do with robots.txt, meta robots and X-Robots-Tag; `ignore` is for your own sites"),
    ] = None
    headers: Annotated[
        str, doc("file of header lines (`Name: value`) that go with every request to the host; only with `own`")
    ] = ""
    login: Annotated[
        str,
        doc(
            "file whose first line is `user:password`, or `$NAME` of a variable: basic authentication; only with `own`"
        ),
    ] = ""
    certificate: Annotated[str, doc("PEM file with a client certificate and its key; only with `own`")] = ""
