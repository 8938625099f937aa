"""Settings of what becomes of a page: how it is transformed, checked, indexed and kept fresh."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quadloom.settings.fields import ABOVE_0, FROM_0, FROM_1, MOST_WEIGHT, SHARE, WEIGHT, Bytes, Length, Seconds, doc


class TransformSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which syntaxes are read, and how."""

    syntaxes: Annotated[
        list[str],
        doc("syntaxes to read, or formats of RDF files, by their names in docs/reference/vocabulary.md; empty = all"),
    ] = []
    contexts: Annotated[
        Literal["known", "fetch"],
        doc("JSON-LD contexts: use only the well-known ones, or fetch others within the limits"),
    ] = "fetch"
    contexts_folder: Annotated[
        str, doc("folder of JSON-LD contexts to use instead of fetching them; `quadloom contexts add` fills it")
    ] = ""
    stylesheets: Annotated[str, doc("folder of XSLT files, chosen by root element; see docs/howto/stylesheets.md")] = ""
    grddl: Annotated[
        Literal["off", "known", "allow"],
        doc("GRDDL transformations: none, the bundled ones, or also those in grddl_allow"),
    ] = "known"
    grddl_allow: Annotated[list[str], doc("GRDDL transformations that may run: URL globs or sha256:… of the file")] = []
    generic_xml: Annotated[bool, doc("map XML without a stylesheet of its own to RDF generically")] = True
    schemas: Annotated[
        str,
        doc("folder of DTD, XSD and RelaxNG files against which XML is validated; `quadloom schemas add` fills it"),
    ] = ""
    vocabulary_expansion: Annotated[bool, doc("expand RDFa vocabularies")] = False


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another program that reads documents: a service over HTTP, or a command of this machine."""

    url: Annotated[str, doc("URL that bodies are POSTed to; several instances separated by spaces")] = ""
    command: Annotated[
        list[str],
        doc("instead of a URL: a program and its arguments; the body is its input, or in the file `{file}`"),
    ] = []
    writes: Annotated[str, doc("media type of what the command writes to its standard output")] = "application/xml"
    memory: Annotated[Bytes, doc("most address space of the command, bytes"), FROM_1] = 1 << 30
    kinds: Annotated[list[str], doc("document kinds or media types that it takes; empty = all")] = []
    timeout: Annotated[Seconds, doc("time for one answer, seconds"), ABOVE_0] = 4.0
    retries: Annotated[int, doc("further attempts, on another instance if there is one"), FROM_0] = 1
    parallel: Annotated[
        int, doc("requests at once to one instance; 0 = 4 for a URL, one per core for a command"), FROM_0
    ] = 0
    patience: Annotated[
        Seconds, doc("how long pages wait for a service that is away, before they are read without it; seconds")
    ] = 60.0


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which defects of the data are looked for while a page is read."""

    checks: Annotated[bool, doc("check the data of every page; costs about .1 ms for a page")] = True
    profiles: Annotated[
        list[str],
        doc("required and recommended properties: `rich-results`, and files of your own (.toml, or SHACL as .ttl)"),
    ] = msgspec.field(default_factory=lambda: ["rich-results"])
    rules_folder: Annotated[
        str, doc("a folder whose rich-results.toml takes the place of the bundled one, to have newer rules")
    ] = ""
    vocabularies: Annotated[
        list[str], doc("files with vocabularies of your own, beside the bundled ones; see docs/howto/audit.md")
    ] = []
    ignore: Annotated[list[str], doc("codes of findings that are not reported by these checks")] = []
    places: Annotated[
        Literal["defects", "all"],
        doc("which findings get line and column: errors and warnings, or remarks too; `inspect` always has all"),
    ] = "defects"


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is stored of a page."""

    links: Annotated[
        Literal["typed", "all", "none"], doc("which links are stored as quads; the link matrix always has all of them")
    ] = "typed"
    schema_org: Annotated[
        Literal["as-written", "http", "https"],
        doc("scheme of schema.org's terms in stored quads and queries; as written, a query has to ask for both"),
    ] = "http"
    only_data: Annotated[bool, doc("archive and index only pages that carry structured data")] = False
    text: Annotated[bool, doc("keep a full-text index")] = True
    text_commit_pages: Annotated[
        int, doc("commit quads and text after this many pages; in a large store after more, by its size"), FROM_1
    ] = 2000
    text_commit_seconds: Annotated[
        Seconds, doc("… or after this many seconds; in a large store up to twelve times as many"), FROM_0
    ] = 5.0
    schedule: Annotated[
        bool,
        doc("store importance, usefulness, change rate and next visit of pages in the graph `urn:quadloom:pages`"),
    ] = True
    visits: Annotated[
        bool,
        doc("store headers, failures, denials and redirects of every visited URL in the graph `urn:quadloom:visits`"),
    ] = False
    retention: Annotated[
        Length,
        doc("how long superseded visits stay in the archive before `quadloom prune` removes them; `forever` = always"),
    ] = "forever"
    synonyms: Annotated[str, doc("file of words that mean the same for a search; see docs/howto/search.md")] = ""
    consolidate: Annotated[bool, doc("merge an entity's owl:sameAs names in entity views")] = False


class FreshnessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When pages are read again, and how the bandwidth is divided."""

    policy: Annotated[
        Literal["harmonic", "xyleme", "freshness", "uniform"], doc("what the refresh schedule optimises")
    ] = "harmonic"
    alpha: Annotated[float, doc("exponent of the xyleme policy"), WEIGHT] = 0.95
    bandwidth: Annotated[
        float,
        doc(
            "pages per second for discovery and refresh together in a continuous crawl, for all workers together; 0 = "
            "first reads as politeness allows, and refreshes by a budget that grows with the pages: each once a day on "
            "average, at least 10 a second in all"
        ),
        msgspec.Meta(ge=0, le=MOST_WEIGHT),
    ] = 0.0
    suspect_share: Annotated[
        float, doc("σ_X: share of the bandwidth for first reads of suspected data; 0 = none"), SHARE
    ] = 0.2
    discovery_share: Annotated[
        float, doc("σ_H: share of the bandwidth for first reads of other pages; 0 = none"), SHARE
    ] = 0.4
    chi: Annotated[
        float, doc("χ: average weight of a page with structured data; an ordinary page weighs 1"), WEIGHT
    ] = 1.0
    min_interval: Annotated[Length, doc("shortest time between two reads of a page (the refresh-cycle floor)")] = "1h"
    max_interval: Annotated[Length, doc("longest time between two reads of a page")] = "90d"
    dead_after: Annotated[
        int, doc("visits in a row that must find a page gone before it counts as dead; see dead_span"), FROM_1
    ] = 3
    dead_span: Annotated[
        Length,
        doc("least time between the first and the last of these visits; seeds, subscribed and important pages: 4 ×"),
    ] = "3d"
    dead_retry: Annotated[Length, doc("time after which a dead page is requested once more; doubles each time")] = (
        "180d"
    )
    importance_every: Annotated[Length, doc("time between two computations of importance")] = "1h"
    importance_memory: Annotated[
        Bytes,
        doc("memory for the link matrix; a larger one is read from disk in blocks"),
        FROM_1,
    ] = 4 * 1024 * 1024 * 1024
    damping: Annotated[float, doc("damping factor of importance"), SHARE] = 0.85
    dangling: Annotated[
        Literal["normalize", "personalize"],
        doc("pages without links: jump to random pages (PageRank), or scale all importance up (Xyleme)"),
    ] = "personalize"
    usefulness: Annotated[
        Literal["mean", "many"],
        doc("usefulness of a page: the mean over its links (Xyleme), or higher the more links lead to data"),
    ] = "mean"
    vocabulary_links: Annotated[
        bool, doc("let links to classes and properties count for importance, as links between pages do")
    ] = False
    promotion: Annotated[float, doc("subscribed pages are raised into this top share of importance"), SHARE] = 0.05
    prior_interval: Annotated[Length, doc("expected time between changes of a page about which nothing is known")] = (
        "14d"
    )


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Topical crawling through sites' own search."""

    words: Annotated[list[str], doc("words of the topic")] = []
    types: Annotated[list[str], doc("types of data wanted, such as schema:Event")] = []
    use_site_search: Annotated[bool, doc("use the search of the sites themselves")] = True
    strategy: Annotated[
        Literal["adaptive", "liu-agah", "best-first", "breadth-first", "random"], doc("how requests are chosen")
    ] = "adaptive"
    budget: Annotated[int, doc("most requests of one topical crawl"), FROM_0] = 1000
    per_site: Annotated[int, doc("most documents taken from one site"), FROM_1] = 100
    searchers: Annotated[list[str], doc("web searchers: searxng:URL, brave:, file:PATH, warehouse:")] = []
    site_queries: Annotated[
        bool, doc("ask the web searchers for `site:host words` if a site has no search of its own")
    ] = False
    third_parties: Annotated[
        list[str], doc("globs of hosts that provide the search of other sites and may be asked, such as *.algolia.net")
    ] = []
    home_pages_only: Annotated[bool, doc("take only home pages from web search results, as Liu and Agah did")] = False
    share: Annotated[
        float,
        doc("most of freshness.bandwidth that a crawl without an end spends on watched topics (`topic --every`)"),
        SHARE,
    ] = 0.1
    channel_ttl: Annotated[Length, doc("how long the way to search a site is remembered")] = "30d"


class SubscriptionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notices of changes, and pushes from other sites' hubs."""

    keep: Annotated[Length, doc("how long notices stay in the outbox; `forever` = always")] = "30d"
    keep_undelivered: Annotated[Length, doc("how long notices stay that a webhook has not accepted yet")] = "90d"
    webhook_seconds: Annotated[Seconds, doc("time for a webhook to answer, seconds"), ABOVE_0] = 10.0
    websub: Annotated[bool, doc("subscribe to the WebSub hubs that feeds and pages name; needs web.public_url")] = False
    websub_topics: Annotated[int, doc("most topics to subscribe to at hubs"), FROM_0] = 1000
    websub_lease: Annotated[Length, doc("lease to request from hubs; renewed before it ends")] = "10d"
