"""All settings: one frozen tree, every field with default, unit and meaning.

docs/reference/settings.md is generated from this file (`make docs`), and a test fails if the two differ.
Loading (files, environment, flags, origins) is in `quadloom.settings.loading`.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from quadloom.errors import SettingsError


def _doc(text: str) -> Meta:
    return Meta(description=text)


Seconds = float
Bytes = int
Length = Annotated[str, Meta(pattern=r"^\s*(forever|\d+(\.\d+)?[smhdw]?)\s*$")]  # a length of time, read by `length_of`

# Bounds: a value outside them is refused when it is loaded, with its place, and not in the middle of a crawl.
_FROM_0, _FROM_1, _ABOVE_0 = Meta(ge=0), Meta(ge=1), Meta(gt=0)
_SHARE, _PORT = Meta(ge=0, le=1), Meta(ge=0, le=65535)

# Standard values of crawl.strategies; `quadloom.phases.extract` says what each of them follows.
STRATEGY_NAMES = ("all", "same-site", "external", "feeds", "seealso", "vocabulary", "sitemaps")


class CrawlSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to read, and how far."""

    contact: Annotated[str, _doc("URL or mail address shown to the sites you visit, in the user agent and From")] = ""
    seeds: Annotated[list[str], _doc("URLs to start from when none is given on the command line")] = []
    scope: Annotated[
        Literal["page", "host", "site", "any"],
        _doc("how far links are followed from the seeds: that page only, its host, its registered domain, anywhere"),
    ] = "site"
    include: Annotated[list[str], _doc("globs, or `re:` RE2 expressions: follow only URLs matching one of them")] = []
    exclude: Annotated[list[str], _doc("globs, or `re:` RE2 expressions: never follow URLs matching one of them")] = []
    max_depth: Annotated[int, _doc("most links away from a seed, 0 = seeds only"), _FROM_0] = 32
    max_pages: Annotated[int, _doc("stop after this many pages, 0 = no limit"), _FROM_0] = 0
    max_pages_per_host: Annotated[
        int, _doc("most pages of one host; errors and near-duplicates count more than one; 0 = no limit"), _FROM_0
    ] = 100_000
    max_seconds: Annotated[float, _doc("stop after this many seconds, 0 = no limit"), _FROM_0] = 0.0
    max_wait: Annotated[Seconds, _doc("end if no page may be visited within this many seconds"), _FROM_0] = 60.0
    order: Annotated[
        Literal["breadth-first", "importance", "random"], _doc("which of the known but unread pages is read first")
    ] = "breadth-first"
    guided_share: Annotated[
        float,
        _doc(
            "share of first reads that go to the most important unread page of a host, by the links read so far; the"
            " others go breadth-first. Only with the order breadth-first"
        ),
        _SHARE,
    ] = 0.5
    strategies: Annotated[
        list[str],
        _doc(f"link strategies: {', '.join(STRATEGY_NAMES)}, or a path to a .rq file"),
    ] = msgspec.field(default_factory=lambda: ["all"])
    skip_types: Annotated[
        list[str],
        _doc("globs of media types whose bodies are not read, besides pictures, audio, video, fonts and installers"),
    ] = []
    read_types: Annotated[
        list[str],
        _doc(
            "globs of media types whose bodies are read although they are not by default, such as image/* for a plug-in"
        ),
    ] = []
    sitemaps: Annotated[bool, _doc("read the sitemaps named in robots.txt")] = True
    site_search: Annotated[
        int,
        _doc(
            "most requests to the own search of each host that is crawled, to find pages that no page links to; 0 ="
            " leave it alone"
        ),
        _FROM_0,
    ] = 0
    transport: Annotated[
        str,
        _doc(
            "what answers requests: `http:` = the web; `replay:DIRECTORY` = the archive of the warehouse in DIRECTORY,"
            " the newest response of each URL, or with `?until=2026-01-31` the newest at that time; nobody is asked"
        ),
    ] = "http:"
    browser: Annotated[
        Literal["never", "auto", "always"],
        _doc(
            "run the scripts of HTML pages in Chromium: never; only of pages that are empty without them; of all."
            " Needs the extra `browser`, and about a second of CPU for each such page"
        ),
    ] = "never"
    browser_path: Annotated[str, _doc("the Chromium to run; empty = the one on the path")] = ""
    user_agent: Annotated[str, _doc("product token, sent to servers and looked up in robots.txt")] = "Quadloom"
    workers: Annotated[int, _doc("transform processes, 0 = one less than there are cores, at least one"), _FROM_0] = 0
    batch: Annotated[int, _doc("most pages written in one transaction"), _FROM_1] = 128
    batch_seconds: Annotated[Seconds, _doc("longest wait before a smaller batch is written, seconds"), _FROM_0] = 0.25
    in_flight: Annotated[
        int, _doc("most pages in progress at a time, from the queue to the transaction (back-pressure)"), _FROM_1
    ] = 600
    failpoint: Annotated[str, _doc("for tests: end the process at this point of the write order")] = ""


class PolitenessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often and how hard hosts may be asked."""

    robots: Annotated[Literal["obey", "ignore"], _doc("what to do with robots.txt, meta robots and X-Robots-Tag")] = (
        "obey"
    )
    delay: Annotated[Seconds, _doc("least time between two requests to one host, seconds"), _FROM_0] = 1.0
    ip_delay: Annotated[
        Seconds,
        _doc("least time between two requests to one IP address, seconds; at most `delay`, if only that is set"),
        _FROM_0,
    ] = 0.2
    per_site: Annotated[int, _doc("requests to one host at the same time"), _FROM_1] = 1
    adaptive: Annotated[
        float,
        _doc("wait at least this many times the last response time; 0 = do not; 0 if `delay` is set and this is not"),
        _FROM_0,
    ] = 2.0
    max_delay: Annotated[Seconds, _doc("longest adaptive delay, seconds"), _FROM_0] = 30.0
    max_crawl_delay: Annotated[Seconds, _doc("a longer Crawl-delay is shortened to this many seconds"), _FROM_0] = (
        3600.0
    )
    backoff: Annotated[
        Seconds, _doc("first pause after 429, 503 or a dead host without Retry-After, seconds"), _FROM_0
    ] = 10.0
    max_backoff: Annotated[Seconds, _doc("longest pause, seconds; pauses double up to this, with jitter"), _FROM_0] = (
        21600.0
    )
    retries: Annotated[int, _doc("further attempts to read a page after a transient failure"), _FROM_0] = 3
    robots_ttl: Annotated[Seconds, _doc("seconds a robots.txt stays valid"), _FROM_0] = 86400.0
    robots_missing_ttl: Annotated[Seconds, _doc("seconds that a missing robots.txt (4xx) is remembered"), _FROM_0] = (
        86400.0
    )
    robots_error_ttl: Annotated[
        Seconds, _doc("seconds until an unavailable robots.txt (5xx, no answer) is requested again"), _FROM_0
    ] = 1800.0


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that a response, a document or a query may take."""

    connections: Annotated[int, _doc("open sockets of the fetcher"), _FROM_1] = 300
    total_seconds: Annotated[
        Seconds, _doc("a whole request including name resolution and redirects, seconds"), _ABOVE_0
    ] = 30.0
    connect_seconds: Annotated[Seconds, _doc("connection set-up including TLS, seconds"), _ABOVE_0] = 10.0
    dns_seconds: Annotated[Seconds, _doc("name resolution, seconds"), _ABOVE_0] = 5.0
    dns_ttl: Annotated[Seconds, _doc("seconds an address stays cached"), _FROM_0] = 600.0
    dns_negative_ttl: Annotated[Seconds, _doc("seconds a failed name stays cached"), _FROM_0] = 60.0
    low_speed_bytes: Annotated[Bytes, _doc("bytes per second below which a transfer counts as stalled"), _FROM_0] = 1024
    low_speed_seconds: Annotated[Seconds, _doc("a stalled transfer is ended after this many seconds"), _ABOVE_0] = 10.0
    body_bytes: Annotated[Bytes, _doc("a decoded body, bytes; a longer one is truncated and marked"), _FROM_1] = (
        10 * 1024 * 1024
    )
    header_bytes: Annotated[Bytes, _doc("all response headers together, bytes"), _FROM_1] = 64 * 1024
    header_count: Annotated[int, _doc("number of response headers"), _FROM_1] = 100
    decode_ratio: Annotated[
        float, _doc("ratio of decoded to transferred bytes, checked after the first decoded MiB"), _ABOVE_0
    ] = 200.0
    large_bytes: Annotated[Bytes, _doc("a body with a longer Content-Length is not read, bytes"), _FROM_1] = (
        50 * 1024 * 1024
    )
    redirects: Annotated[int, _doc("redirects followed in a row"), _FROM_0] = 10
    robots_bytes: Annotated[Bytes, _doc("bytes of a robots.txt that are read; the rest is ignored"), _FROM_1] = (
        500 * 1024
    )
    render_seconds: Annotated[Seconds, _doc("running the scripts of one page, seconds"), _ABOVE_0] = 20.0
    render_requests: Annotated[int, _doc("requests of the scripts of one page"), _FROM_0] = 60
    render_bytes: Annotated[Bytes, _doc("bytes that the scripts of one page may request"), _FROM_1] = 20 * 1024 * 1024
    transform_seconds: Annotated[
        Seconds,
        _doc("detecting and transforming one page, seconds; waiting for a processor is not counted"),
        _ABOVE_0,
    ] = 10.0
    transform_bytes: Annotated[Bytes, _doc("memory of a transform process, bytes"), _FROM_1] = 768 * 1024 * 1024
    quads_per_page: Annotated[
        int, _doc("statements stored per page; more than that is reported as a finding"), _FROM_0
    ] = 200_000
    quad_bytes_per_page: Annotated[
        Bytes, _doc("statements stored per page, bytes; what is left out is reported as a finding"), _FROM_1
    ] = 96 * 1024 * 1024
    amplification: Annotated[
        float,
        _doc("statements of a page, beyond the first 8 MiB: at most this many times the bytes of its document"),
        _ABOVE_0,
    ] = 30.0
    long_terms_per_page: Annotated[
        int, _doc("different names and values of more than 1,024 characters per page"), _FROM_0
    ] = 5_000
    iri_chars: Annotated[int, _doc("length of an IRI; statements with a longer one are left out"), _FROM_1] = 8192
    quads_per_host: Annotated[
        int,
        _doc("statements stored per host, 0 = no limit; larger pages use up crawl.max_pages_per_host faster"),
        _FROM_0,
    ] = 50_000_000
    quad_bytes_per_host: Annotated[
        Bytes, _doc("the same for the bytes of all statements of a host, 0 = no limit"), _FROM_0
    ] = 8 * 1024 * 1024 * 1024
    links_per_page: Annotated[int, _doc("links stored per page"), _FROM_0] = 20_000
    text_chars: Annotated[int, _doc("main text stored per page, characters"), _FROM_0] = 500_000
    literal_chars: Annotated[
        int, _doc("words of a page's data in the text index, characters; more is reported as a finding"), _FROM_0
    ] = 10_000_000
    context_loads: Annotated[int, _doc("remote JSON-LD contexts loaded per document"), _FROM_0] = 8
    context_bytes: Annotated[Bytes, _doc("size of a remote JSON-LD context, bytes"), _FROM_1] = 1024 * 1024
    query_seconds: Annotated[Seconds, _doc("time of a SPARQL query, seconds"), _ABOVE_0] = 30.0
    query_bytes: Annotated[Bytes, _doc("memory of a query process, bytes"), _FROM_1] = 1024 * 1024 * 1024
    query_rows: Annotated[int, _doc("rows of a result, 0 = no limit"), _FROM_0] = 1_000_000
    query_result_bytes: Annotated[Bytes, _doc("size of a result, bytes"), _FROM_1] = 256 * 1024 * 1024
    query_length: Annotated[Bytes, _doc("length of a query, bytes"), _FROM_1] = 64 * 1024
    query_nesting: Annotated[int, _doc("depth of nested brackets and groups in a query"), _FROM_1] = 100
    query_patterns: Annotated[int, _doc("text patterns (`ql:matches`) in a query"), _FROM_1] = 16
    query_hits: Annotated[int, _doc("hits of all text patterns of a query together"), _FROM_1] = 20_000
    query_hit_bytes: Annotated[Bytes, _doc("length of the URLs of these hits together, bytes"), _FROM_1] = (
        4 * 1024 * 1024
    )


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which addresses may be visited."""

    allow: Annotated[list[str], _doc("CIDR blocks that may be visited although they are not public")] = []
    ports: Annotated[list[int], _doc("ports that may be visited; empty = all")] = []
    hosts: Annotated[
        dict[str, str],
        _doc("addresses of host names that DNS does not know, as in a hosts file; `*.x` matches all names below x"),
    ] = {}
    authorities: Annotated[
        str, _doc("PEM file of the certificate authorities to trust, instead of the machine's own")
    ] = ""


class FreshnessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When pages are read again, and how the bandwidth is divided."""

    policy: Annotated[
        Literal["harmonic", "xyleme", "freshness", "uniform"], _doc("what the refresh schedule optimises")
    ] = "harmonic"
    alpha: Annotated[float, _doc("exponent of the xyleme policy"), _ABOVE_0] = 0.95
    bandwidth: Annotated[
        float,
        _doc("pages per second for discovery and refresh together in a continuous crawl, for all workers together"),
        _ABOVE_0,
    ] = 10.0
    suspect_share: Annotated[float, _doc("σ_X: share of the bandwidth for first reads of suspected data"), _SHARE] = 0.2
    discovery_share: Annotated[float, _doc("σ_H: share of the bandwidth for first reads of other pages"), _SHARE] = 0.4
    chi: Annotated[
        float, _doc("χ: average weight of a page with structured data; an ordinary page weighs 1"), _ABOVE_0
    ] = 1.0
    min_interval: Annotated[Length, _doc("shortest time between two reads of a page (the refresh-cycle floor)")] = "1h"
    max_interval: Annotated[Length, _doc("longest time between two reads of a page")] = "90d"
    dead_after: Annotated[
        int, _doc("visits in a row that must find a page gone before it counts as dead; see dead_span"), _FROM_1
    ] = 3
    dead_span: Annotated[
        Length,
        _doc("least time between the first and the last of these visits; seeds, subscribed and important pages: 4 ×"),
    ] = "3d"
    dead_retry: Annotated[Length, _doc("time after which a dead page is requested once more; doubles each time")] = (
        "180d"
    )
    importance_every: Annotated[Length, _doc("time between two computations of importance")] = "1h"
    importance_memory: Annotated[
        Bytes,
        _doc("memory for the link matrix; a larger one is read from disk in slices (with numba: `quadloom[fast]`)"),
        _FROM_1,
    ] = 4 * 1024 * 1024 * 1024
    damping: Annotated[float, _doc("damping factor of importance"), _SHARE] = 0.85
    dangling: Annotated[
        Literal["normalize", "personalize"],
        _doc("pages without links: scale all importance up (Xyleme), or jump to random pages (PageRank)"),
    ] = "normalize"
    usefulness: Annotated[
        Literal["mean", "many"],
        _doc("usefulness of a page: the mean over its links (Xyleme), or higher the more links lead to data"),
    ] = "mean"
    vocabulary_links: Annotated[
        bool, _doc("let links to classes and properties count for importance, as links between pages do")
    ] = False
    promotion: Annotated[float, _doc("subscribed pages are raised into this top share of importance"), _SHARE] = 0.05
    prior_interval: Annotated[Length, _doc("expected time between changes of a page about which nothing is known")] = (
        "14d"
    )


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is stored of a page."""

    links: Annotated[
        Literal["typed", "all", "none"], _doc("which links are stored as quads; the link matrix always has all of them")
    ] = "typed"
    schema_org: Annotated[
        Literal["as-written", "http", "https"],
        _doc("scheme of schema.org's terms in stored quads and queries; as written, a query has to ask for both"),
    ] = "http"
    only_data: Annotated[bool, _doc("archive and index only pages that carry structured data")] = False
    text: Annotated[bool, _doc("keep a full-text index")] = True
    text_commit_pages: Annotated[int, _doc("commit quads and text after this many pages"), _FROM_1] = 2000
    text_commit_seconds: Annotated[Seconds, _doc("… or after this many seconds"), _FROM_0] = 5.0
    schedule: Annotated[
        bool,
        _doc("store importance, usefulness, change rate and next visit of pages in the graph `urn:quadloom:pages`"),
    ] = True
    visits: Annotated[
        bool,
        _doc("store headers, failures, denials and redirects of every visited URL in the graph `urn:quadloom:visits`"),
    ] = False
    retention: Annotated[
        Length,
        _doc("how long superseded visits stay in the archive before `quadloom prune` removes them; `forever` = always"),
    ] = "forever"
    synonyms: Annotated[str, _doc("file of words that mean the same for a search; see docs/howto/search.md")] = ""
    consolidate: Annotated[bool, _doc("merge an entity's owl:sameAs names in entity views")] = False


class TransformSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which syntaxes are read, and how."""

    syntaxes: Annotated[list[str], _doc("syntaxes to read; empty = all installed ones")] = []
    contexts: Annotated[
        Literal["known", "fetch"],
        _doc("JSON-LD contexts: use only the well-known ones, or fetch others within the limits"),
    ] = "fetch"
    contexts_folder: Annotated[
        str, _doc("folder of JSON-LD contexts to use instead of fetching them; `quadloom contexts add` fills it")
    ] = ""
    stylesheets: Annotated[str, _doc("folder of XSLT files, chosen by root element; see docs/howto/stylesheets.md")] = (
        ""
    )
    grddl: Annotated[
        Literal["off", "known", "allow"],
        _doc("GRDDL transformations: none, the bundled ones, or also those in grddl_allow"),
    ] = "known"
    grddl_allow: Annotated[
        list[str], _doc("GRDDL transformations that may run: URL globs or sha256:… of the file")
    ] = []
    generic_xml: Annotated[bool, _doc("map XML without a stylesheet of its own to RDF generically")] = True
    schemas: Annotated[
        str,
        _doc("folder of DTD, XSD and RelaxNG files against which XML is validated; `quadloom schemas add` fills it"),
    ] = ""
    vocabulary_expansion: Annotated[bool, _doc("expand RDFa vocabularies")] = False


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which defects of the data are looked for while a page is read."""

    checks: Annotated[bool, _doc("check the data of every page; costs about .1 ms for a page")] = True
    profiles: Annotated[
        list[str],
        _doc("required and recommended properties: `rich-results`, and files of your own (.toml, or SHACL as .ttl)"),
    ] = msgspec.field(default_factory=lambda: ["rich-results"])
    vocabularies: Annotated[
        list[str], _doc("files with vocabularies of your own, beside the bundled ones; see docs/howto/audit.md")
    ] = []
    ignore: Annotated[list[str], _doc("codes of findings that are not reported by these checks")] = []
    places: Annotated[
        Literal["defects", "all"],
        _doc("which findings get line and column: errors and warnings, or remarks too; `inspect` always has all"),
    ] = "defects"


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another program that reads documents: a service over HTTP, or a command of this machine."""

    url: Annotated[str, _doc("URL that bodies are POSTed to; several instances separated by spaces")] = ""
    command: Annotated[
        list[str],
        _doc("instead of a URL: a program and its arguments; the body is its input, or in the file `{file}`"),
    ] = []
    writes: Annotated[str, _doc("media type of what the command writes to its standard output")] = "application/xml"
    memory: Annotated[Bytes, _doc("most address space of the command, bytes"), _FROM_1] = 1 << 30
    kinds: Annotated[list[str], _doc("document kinds or media types that it takes; empty = all")] = []
    timeout: Annotated[Seconds, _doc("time for one answer, seconds"), _ABOVE_0] = 4.0
    retries: Annotated[int, _doc("further attempts, on another instance if there is one"), _FROM_0] = 1
    parallel: Annotated[
        int, _doc("requests at once to one instance; 0 = 4 for a URL, one per core for a command"), _FROM_0
    ] = 0
    patience: Annotated[
        Seconds, _doc("how long pages wait for a service that is away, before they are read without it; seconds")
    ] = 60.0


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Topical crawling through sites' own search."""

    words: Annotated[list[str], _doc("words of the topic")] = []
    types: Annotated[list[str], _doc("types of data wanted, such as schema:Event")] = []
    use_site_search: Annotated[bool, _doc("use the search of the sites themselves")] = True
    strategy: Annotated[
        Literal["adaptive", "liu-agah", "best-first", "breadth-first", "random"], _doc("how requests are chosen")
    ] = "adaptive"
    budget: Annotated[int, _doc("most requests of one topical crawl"), _FROM_0] = 1000
    per_site: Annotated[int, _doc("most documents taken from one site"), _FROM_1] = 100
    searchers: Annotated[list[str], _doc("web searchers: searxng:URL, brave:, file:PATH, warehouse:")] = []
    site_queries: Annotated[
        bool, _doc("ask the web searchers for `site:host words` if a site has no search of its own")
    ] = False
    third_parties: Annotated[
        list[str], _doc("globs of hosts that provide the search of other sites and may be asked, such as *.algolia.net")
    ] = []
    home_pages_only: Annotated[bool, _doc("take only home pages from web search results, as Liu and Agah did")] = False
    share: Annotated[
        float,
        _doc("most of freshness.bandwidth that a crawl without an end spends on watched topics (`topic --every`)"),
        _SHARE,
    ] = 0.1
    channel_ttl: Annotated[Length, _doc("how long the way to search a site is remembered")] = "30d"


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Storage backends, by URL; the defaults are files in the warehouse."""

    frontier: Annotated[str, _doc("sqlite:, or postgresql://user@host:port/database for many machines")] = "sqlite:"
    catalog: Annotated[str, _doc("sqlite:, or postgresql: for the frontier's database")] = "sqlite:"
    archive: Annotated[str, _doc("warc:, warc:///directory that many machines share, or s3://bucket/prefix")] = "warc:"
    quads: Annotated[
        str,
        _doc(
            "oxigraph:, oxigraph:///folder on another disk, or sparql+http(s)://host:port/path of a server; "
            "several servers, separated by blanks, have a part of the sites each"
        ),
    ] = "oxigraph:"
    text: Annotated[
        str,
        _doc(
            "tantivy:, tantivy:///folder on another disk, tantivy+shards:///directory that many machines share, "
            "or postgresql: for the frontier's database"
        ),
    ] = "tantivy:"
    links: Annotated[str, _doc("folder of the links between pages, on another disk; empty = in the warehouse")] = ""
    lake: Annotated[
        str,
        _doc("Parquet files of `quadloom lake`: a directory or s3://bucket/prefix; empty = `lake` in the warehouse"),
    ] = ""
    directories: Annotated[list[str], _doc("more directories (disks) for archive files, used in turn")] = []
    spool: Annotated[
        str,
        _doc("directory for transformed pages that another process indexes; many machines share one; empty = `spool`"),
    ] = ""
    archive_file_bytes: Annotated[
        Bytes, _doc("size at which an archive file is closed and a new one begun, bytes"), _FROM_1
    ] = 1024 * 1024 * 1024
    archive_upload_seconds: Annotated[
        Seconds, _doc("s3: most seconds until an archive file is closed and uploaded"), _ABOVE_0
    ] = 900.0
    archive_endpoint: Annotated[str, _doc("s3: address of a server other than Amazon's, such as MinIO")] = ""
    archive_region: Annotated[str, _doc("s3: region of the bucket; empty = from the AWS environment")] = ""
    archive_writer: Annotated[
        str, _doc("s3: folder of this writer's files in the bucket; empty = a random one, chosen once")
    ] = ""
    quads_query: Annotated[str, _doc("SPARQL server: address for queries, relative to stores.quads or a whole URL")] = (
        "query"
    )
    quads_update: Annotated[str, _doc("SPARQL server: address for updates")] = "update"
    quads_graph_store: Annotated[
        str, _doc("SPARQL server: address of the Graph Store Protocol for reading graphs; empty = read by query")
    ] = ""
    quads_union: Annotated[
        str, _doc("SPARQL server: parameter that makes the union of all graphs the default graph; empty = it always is")
    ] = "union-default-graph=true"
    quads_user: Annotated[str, _doc("SPARQL server: user name; the password comes from QUADLOOM_QUADS_PASSWORD")] = ""
    quads_seconds: Annotated[
        Seconds, _doc("SPARQL server: longest wait for data before it counts as unreachable, seconds"), _ABOVE_0
    ] = 60.0


class SubscriptionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notices of changes, and pushes from other sites' hubs."""

    keep: Annotated[Length, _doc("how long notices stay in the outbox; `forever` = always")] = "30d"
    keep_undelivered: Annotated[Length, _doc("how long notices stay that a webhook has not accepted yet")] = "90d"
    webhook_seconds: Annotated[Seconds, _doc("time for a webhook to answer, seconds"), _ABOVE_0] = 10.0
    websub: Annotated[bool, _doc("subscribe to the WebSub hubs that feeds and pages name; needs web.public_url")] = (
        False
    )
    websub_topics: Annotated[int, _doc("most topics to subscribe to at hubs"), _FROM_0] = 1000
    websub_lease: Annotated[Length, _doc("lease to request from hubs; renewed before it ends")] = "10d"


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Many machines on one PostgreSQL database."""

    lease: Annotated[
        Seconds, _doc("seconds after a worker's last heartbeat until others take over its shards"), _ABOVE_0
    ] = 90.0
    heartbeat: Annotated[Seconds, _doc("seconds between two heartbeats of a worker"), _ABOVE_0] = 10.0
    links: Annotated[
        str,
        _doc("directory that all workers share: importance from the links of all; empty = of the links a worker saw"),
    ] = ""


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The web site and API of `quadloom serve`."""

    host: Annotated[str, _doc("address to listen on; anything but loopback needs a token")] = "127.0.0.1"
    port: Annotated[int, _doc("port to listen on"), _PORT] = 7272
    public_url: Annotated[str, _doc("address at which others reach this site, such as https://data.example/")] = ""
    token_file: Annotated[str, _doc("file with the token that control requests must carry")] = ""
    hosts: Annotated[list[str], _doc("more Host names to answer to")] = []
    cors: Annotated[
        Literal["auto", "on", "off"],
        _doc("whether other sites' pages may read open addresses such as /sparql; auto: unless `host` is loopback"),
    ] = "auto"
    rate: Annotated[float, _doc("requests per second and client, 0 = no limit"), _FROM_0] = 50.0
    concurrency: Annotated[int, _doc("SPARQL queries per client at the same time, 0 = no limit"), _FROM_0] = 2
    connections: Annotated[
        int, _doc("open connections; up to 50 of them are left for health checks if all are in use"), Meta(ge=10)
    ] = 1000
    client_connections: Annotated[
        int, _doc("open connections per client, 0 = no limit; loopback has none, since a proxy may be there"), _FROM_0
    ] = 200
    head_seconds: Annotated[Seconds, _doc("time to send the head of a request, seconds"), _ABOVE_0] = 10.0
    body_seconds: Annotated[Seconds, _doc("time to send the body of a request, seconds"), _ABOVE_0] = 60.0
    send_seconds: Annotated[
        Seconds, _doc("a client that reads less than 16 KiB of its response in this time is dropped, seconds"), _ABOVE_0
    ] = 30.0


OWN_PER_SITE = 16  # requests at the same time to a host of the user's own


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exceptions for hosts that match a glob; everything not given stays as above."""

    match: Annotated[str, _doc("glob over host names")]
    own: Annotated[
        bool,
        _doc(
            "a host of your own: no pauses, not even its Crawl-delay, and 16 requests at the same time; `delay` and "
            "`per_site` of this table still hold, and so does the rest of robots.txt"
        ),
    ] = False
    delay: Annotated[Annotated[float, _FROM_0] | None, _doc("seconds between two requests")] = None
    per_site: Annotated[Annotated[int, _FROM_1] | None, _doc("requests at the same time")] = None
    max_pages: Annotated[Annotated[int, _FROM_0] | None, _doc("most pages, 0 = no limit")] = None
    robots: Annotated[
        Literal["obey", "ignore"] | None,
        _doc("what to do with robots.txt, meta robots and X-Robots-Tag; `ignore` is for your own sites"),
    ] = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. Sections are TOML tables; environment as QUADLOOM_SECTION__KEY."""

    crawl: CrawlSettings = CrawlSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    limits: LimitSettings = LimitSettings()
    guard: GuardSettings = GuardSettings()
    freshness: FreshnessSettings = FreshnessSettings()
    index: IndexSettings = IndexSettings()
    transform: TransformSettings = TransformSettings()
    audit: AuditSettings = AuditSettings()
    topic: TopicSettings = TopicSettings()
    stores: StoreSettings = StoreSettings()
    subscriptions: SubscriptionSettings = SubscriptionSettings()
    cluster: ClusterSettings = ClusterSettings()
    web: WebSettings = WebSettings()
    service: list[ServiceSettings] = []
    site: list[SiteSettings] = []


def without_password(text: str) -> str:
    """The URL with its password masked: `user:***@host`, `password=***`."""
    return re.sub(r"(?i)(?<=[?&]password=)[^&]*", "***", re.sub(r"(://[^/@\s]*?):[^/@\s]*@", r"\1:***@", text))


_CENTURY = 100 * 365.25 * 86400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def seconds(text: str) -> float:
    """Read `90d`, `1h`, `30m`, `45s` or plain seconds; `forever` is infinity. Raises ValueError for anything else."""
    text = text.strip().lower()
    if text == "forever":
        return math.inf
    length = float(text[:-1]) * _UNITS[text[-1]] if text and text[-1] in _UNITS else float(text)
    if not 0.0 <= length < math.inf:
        raise ValueError(f"not a length of time: {text!r}")
    return length


def length_of(name: str, text: str, least: float = 0.0) -> float:
    """The same for the setting `name`, at most a century so that it can be added to a date. Raises `SettingsError`."""
    try:
        return min(max(seconds(text), least), _CENTURY)
    except ValueError:
        raise SettingsError(
            f"{name} = {text!r} is not a length of time", hint="write `90d`, `12h`, `30m` or `forever`"
        ) from None
