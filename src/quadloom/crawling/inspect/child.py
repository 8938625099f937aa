"""The transformation of one document in a process of its own, with limits of time and memory.

The limits are the kernel's, because native parsers neither return to Python nor fail politely on a document that was
made to hurt them. The child may end at any moment; the parent then reports how.
"""

from __future__ import annotations

import subprocess

import msgspec

from quadloom.documents.syntaxes.plugins import AssembledSyntaxes
from quadloom.model.document import Transformed
from quadloom.model.finding import Finding
from quadloom.model.service import ServiceAnswer
from quadloom.process import limits
from quadloom.process.channel import Channel, run, start
from quadloom.process.request_child import ChildEnded, RequestChild
from quadloom.settings import Settings

_START_SECONDS = 20.0  # for the interpreter and its imports on a busy machine; the alarm starts after them


class InspectTask(msgspec.Struct, frozen=True):
    """A document and how to read it."""

    body: bytes
    url: str
    content_type: str | None
    headers: tuple[tuple[str, str], ...]
    settings: Settings


class InspectResult(msgspec.Struct, frozen=True):
    """`transformed`, or in `failure` why there is none. `seconds`: CPU time of detect and transform.

    `nquads`: the statements that a crawl would store, each once, with those of `index.links`. `markdown`: the main
    part.
    """

    transformed: Transformed | None = None
    nquads: bytes = b""
    seconds: float = 0.0
    failure: str = ""
    markdown: str = ""


class InspectWorker:
    """A child process that transforms one document after another, with the limits of the first. It is started with the
    first, and again after a document has ended it."""

    def __init__(self) -> None:
        self._child: RequestChild | None = None

    def transform(self, task: InspectTask) -> InspectResult:
        """Transform in the child. Never raises for what the document does to it."""
        caps = task.settings.limits
        if self._child is None:
            # Twice the memory as address space: libraries map more than they touch.
            space = caps.transform_bytes * 2
            self._child = RequestChild(
                lambda: start(__name__, task.url, address_space=space, stderr=subprocess.DEVNULL)
            )
        services = sum(service.timeout * (1 + service.retries) for service in task.settings.service)
        try:
            return self._child.ask(task, InspectResult, seconds=2 * caps.transform_seconds + services + _START_SECONDS)
        except ChildEnded as ended:
            if ended.exit is None:
                return InspectResult(failure="could not be started")
            return InspectResult(failure=ended.exit.describe(caps.transform_seconds, caps.transform_bytes))

    def close(self) -> None:
        if self._child is not None:
            self._child.end()


def serve(channel: Channel) -> None:
    channel.receive(str)
    task = channel.receive(InspectTask)
    from quadloom.documents.syntaxes.plugins import all_syntaxes

    syntaxes = all_syntaxes(task.settings)
    while True:
        limits.limit_time(task.settings.limits.transform_seconds)
        channel.send(_result(task, syntaxes))
        limits.set_alarm(0)
        task = channel.receive(InspectTask)


def _result(task: InspectTask, syntaxes: AssembledSyntaxes) -> InspectResult:
    from time import process_time

    from quadloom.crawling.workers.services.client import ask_now
    from quadloom.documents.headers import with_header_links
    from quadloom.documents.index import page_statements
    from quadloom.documents.syntaxes.external import ServicesNeeded
    from quadloom.documents.transform import transform
    from quadloom.fetching.document_loader import document_loader
    from quadloom.model.page import Page
    from quadloom.model.quads import as_nquads

    settings = msgspec.structs.replace(task.settings, audit=msgspec.structs.replace(task.settings.audit, places="all"))
    loader = document_loader(settings)

    def read(answers: tuple[ServiceAnswer, ...] | None = None) -> Transformed:
        return transform(
            task.body,
            url=task.url,
            content_type=task.content_type,
            headers=task.headers,
            settings=settings,
            loader=loader,
            syntaxes=syntaxes.registry,
            answers=answers,
        )

    started = process_time()
    try:
        transformed = read()
    except ServicesNeeded as needed:
        limits.set_alarm(0)  # services have limits of their own
        answers = ask_now(task.settings, task.body, needed.requests)
        limits.set_alarm(task.settings.limits.transform_seconds)
        transformed = read(answers)
    seconds = process_time() - started
    markdown = transformed.markdown
    transformed = with_header_links(transformed, Page(task.url, task.url, 200, task.headers, b"", 0.0, 0.0))
    index = settings.index
    triples, named = page_statements(transformed, index.links, index.schema_org)
    findings: tuple[Finding, ...] = (*transformed.findings, *syntaxes.findings)
    distinct = as_nquads(dict.fromkeys(triples), named, task.url)
    stated = msgspec.structs.replace(transformed, findings=findings)
    return InspectResult(stated, distinct, seconds, markdown=markdown)


if __name__ == "__main__":
    run(serve)
