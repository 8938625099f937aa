"""Transformation services of other programs: the body goes out by HTTP, RDF or XML comes back.

MultiCrawler gave pages to services by a hash of their URL and found that to be its bottleneck: the slowest instance
set the pace. Here each request goes to the instance with the fewest requests in progress, the least recently used among
equals. An instance that fails three times in a row is quarantined, at first for five seconds, then twice as long up
to five minutes; when the time is over, one request probes it. A failed request is repeated on another instance.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, get_args

from lxml import etree

from quadloom.errors import FetchError, SyntaxInvalid
from quadloom.model.document import Document, Kind
from quadloom.settings import ServiceSettings
from quadloom.syntaxes.rdf.files import RdfKind
from quadloom.syntaxes.registry import Context, Extractor, Registry
from quadloom.syntaxes.terms import RDF
from quadloom.syntaxes.xml import generic as generic_xml
from quadloom.syntaxes.xml import stylesheet_folder as xslt_folder
from quadloom.syntaxes.xml import xslt

MAX_ANSWER_BYTES = 32 * 1024 * 1024
SYNTAX = "external"
FAILURES = 3  # in a row, until an instance is quarantined
FIRST_QUARANTINE = 5.0  # seconds
LONGEST_QUARANTINE = 300.0
ACCEPT = (
    "application/n-quads, application/n-triples, text/turtle, application/trig, application/rdf+xml;q=0.9,"
    " application/ld+json;q=0.8, application/xml;q=0.5"
)
_RDF_TYPES: dict[str, RdfKind] = {
    "application/n-quads": "nquads", "application/n-triples": "ntriples", "text/turtle": "turtle",
    "application/trig": "trig", "application/rdf+xml": "rdfxml",
}  # fmt: skip


class ServiceReply(NamedTuple):
    """What a service answered."""

    status: int
    content_type: str
    body: bytes


Send = Callable[[str, bytes, Sequence[tuple[str, str]], float], ServiceReply]
"""POST (url, body, headers, seconds). Raises `FetchError` if there is no answer. Its maker limits time and size."""


class _Instance:
    __slots__ = ("failures", "free_at", "last_used", "outstanding", "quarantine", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self.outstanding = 0
        self.failures = 0
        self.quarantine = 0.0
        self.free_at = 0.0  # not to be asked before, on the pool's clock
        self.last_used = 0


class ServicePool:
    """The instances of one service. May be shared by threads."""

    def __init__(self, service: ServiceSettings, send: Send, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.service = service
        self._send = send
        self._clock = clock
        self._lock = threading.Lock()
        self._turn = 0
        self._instances = [_Instance(url) for url in service.url.split()]

    def ask(self, body: bytes, headers: Sequence[tuple[str, str]]) -> ServiceReply:
        """The answer of the first instance that answers. Raises `SyntaxInvalid` if none does."""
        tried: set[str] = set()
        reason = "it has no instance that may be asked now"
        for _ in range(1 + max(0, self.service.retries)):
            instance = self._acquire(tried)
            if instance is None:
                break
            tried.add(instance.url)
            try:
                reply = self._send(instance.url, body, headers, self.service.timeout)
            except FetchError as error:
                reason = error.message
                self._release(instance, healthy=False)
                continue
            except BaseException:
                self._release(instance, healthy=False)
                raise
            # A 4xx is a verdict on the page, not on the service's health; another instance would give the same.
            self._release(instance, healthy=reply.status < 500 and reply.status != 429)
            if reply.status < 300:
                return reply
            reason = f"{instance.url} answered {reply.status}"
            if reply.status < 500 and reply.status != 429:
                break
        raise SyntaxInvalid(f"the service gave no answer: {reason}", code="service-failed")

    def _acquire(self, tried: set[str]) -> _Instance | None:
        """The free instance with the fewest requests in progress, then the longest unused. Those already tried come
        last."""
        now = self._clock()
        with self._lock:
            able = [
                one
                for one in self._instances
                # A quarantine that is over lets one probe through, not all that are waiting.
                if one.free_at <= now and not (one.quarantine and one.outstanding)
            ]
            if not able:
                return None
            chosen = min(able, key=lambda one: (one.url in tried, one.outstanding, one.last_used))
            self._turn += 1
            chosen.last_used = self._turn
            chosen.outstanding += 1
            return chosen

    def _release(self, instance: _Instance, *, healthy: bool) -> None:
        with self._lock:
            instance.outstanding -= 1
            if healthy:
                instance.failures = 0
                instance.quarantine = 0.0
                return
            instance.failures += 1
            if instance.failures >= FAILURES or instance.quarantine:
                instance.quarantine = min(instance.quarantine * 2 or FIRST_QUARANTINE, LONGEST_QUARANTINE)
                instance.free_at = self._clock() + instance.quarantine


def with_services(registry: Registry, services: Iterable[ServiceSettings], send: Send) -> Registry:
    """The registry with an extractor for each service, on the kinds or media types it takes (all, if none is given)."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    for service in services:
        pool = ServicePool(service, send)
        types = frozenset(word.lower() for word in service.kinds if "/" in word)
        named = [kind for kind in kinds if kind in service.kinds]
        wanted = [kind for kind in kinds if kind != "empty"] if types or not service.kinds else named
        registry = registry.adding(Extractor(SYNTAX, _reader(pool, frozenset(service.kinds), types)), wanted)
    return registry


def _reader(pool: ServicePool, kinds: frozenset[str], types: frozenset[str]) -> Callable[[Context], None]:
    def read(context: Context) -> None:
        document = context.document
        if kinds and document.kind not in kinds and document.media_type.lower() not in types:
            return
        headers = (
            ("content-type", document.media_type or "application/octet-stream"),
            ("content-location", context.url),
            ("accept", ACCEPT),
        )
        write_reply(context, pool.ask(context.body, headers))

    return read


def write_reply(context: Context, reply: ServiceReply) -> None:
    """Write what a service answered: RDF in any syntax, or XML that goes through stylesheets."""
    if len(reply.body) > MAX_ANSWER_BYTES:
        raise SyntaxInvalid(f"the answer has more than {MAX_ANSWER_BYTES} bytes", code="service-answer-too-large")
    media_type = reply.content_type.partition(";")[0].strip().lower()
    kind = _RDF_TYPES.get(media_type)
    if reply.status == 204 or not reply.body.strip():
        return
    if kind is not None:
        xslt.state(context, reply.body, kind, base=context.base, syntax=SYNTAX)
    elif media_type in ("application/ld+json", "application/json"):
        _write_json_ld(context, reply.body)
    elif media_type.endswith(("/xml", "+xml")):
        _write_xml(context, reply.body)
    else:
        raise SyntaxInvalid(
            f"the service answered {media_type or 'nothing known'}, not RDF or XML", code="service-type"
        )


def _write_json_ld(context: Context, body: bytes) -> None:
    from quadloom.syntaxes import jsonld  # loaded only if a service answers in JSON-LD

    nquads = jsonld.extract(body, url=context.base, loader=context.loader)
    context.sink.pour(xslt.with_own_blank_nodes(nquads))


def _write_xml(context: Context, body: bytes) -> None:
    """XML of a service is a document of its own: stylesheets of the user, then the generic mapping."""
    inner = Context(body, Document("xml", "application/xml", "utf-8"), url=context.url, settings=context.settings)
    name = str(inner.root.tag)
    if name == f"{{{RDF}}}RDF":
        xslt.state(context, etree.tostring(inner.root), "rdfxml", base=context.base, syntax=SYNTAX)
        return
    inner.document = Document("xml", "application/xml", "utf-8", root=name)
    xslt_folder.read(inner)
    generic_xml.read(inner)
    context.findings += inner.findings
    context.links += inner.links
    context.sink.pour(xslt.with_own_blank_nodes(inner.sink.nquads()))
