"""The transformation of one document in a process of its own, with limits of time and memory.

The limits are the kernel's, because native parsers neither return to Python nor fail politely on a document that was
made to hurt them. The child may end at any moment; the parent then reports how.
"""

from __future__ import annotations

import subprocess

import msgspec

from quadloom.model.document import Transformed
from quadloom.model.finding import Finding
from quadloom.model.service import ServiceAnswer
from quadloom.process import limits
from quadloom.process.channel import Channel, ChannelClosed, run, start
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

    `nquads`: the statements that a crawl would store, each once, with those of `index.links`.
    """

    transformed: Transformed | None = None
    nquads: bytes = b""
    seconds: float = 0.0
    failure: str = ""


def transform_in_child(task: InspectTask) -> InspectResult:
    """Transform in a child process. Never raises for what the document does to it."""
    caps = task.settings.limits
    # Twice the memory as address space: libraries map more than they touch.
    child = start(__name__, task.url, address_space=caps.transform_bytes * 2, stderr=subprocess.DEVNULL)
    services = sum(service.timeout * (1 + service.retries) for service in task.settings.service)
    child.kill_after(2 * caps.transform_seconds + services + _START_SECONDS)
    try:
        child.channel.send(task)
        return child.channel.receive(InspectResult)
    except ChannelClosed:
        return InspectResult(failure=child.wait().describe(caps.transform_seconds, caps.transform_bytes))
    finally:
        child.close()


def serve(channel: Channel) -> None:
    channel.receive(str)
    task = channel.receive(InspectTask)
    from time import process_time

    from quadloom.model.page import Page
    from quadloom.phases.headers import with_header_links
    from quadloom.phases.index import page_statements
    from quadloom.phases.loaders import all_syntaxes, document_loader
    from quadloom.phases.transform import transform
    from quadloom.syntaxes.external import ServicesNeeded
    from quadloom.workers.services.client import ask_now

    syntaxes = all_syntaxes(task.settings)
    loader = document_loader(task.settings)

    def read(answers: tuple[ServiceAnswer, ...] | None = None) -> Transformed:
        return transform(
            task.body,
            url=task.url,
            content_type=task.content_type,
            headers=task.headers,
            settings=task.settings,
            loader=loader,
            syntaxes=syntaxes.registry,
            answers=answers,
        )

    limits.limit_time(task.settings.limits.transform_seconds)
    started = process_time()
    try:
        transformed = read()
    except ServicesNeeded as needed:
        limits.set_alarm(0)  # services have limits of their own
        answers = ask_now(task.settings, task.body, needed.requests)
        limits.set_alarm(task.settings.limits.transform_seconds)
        transformed = read(answers)
    transformed = with_header_links(transformed, Page(task.url, task.url, 200, task.headers, b"", 0.0, 0.0))
    index = task.settings.index
    nquads = page_statements(transformed, task.url, index.links, index.schema_org)
    findings: tuple[Finding, ...] = (*transformed.findings, *syntaxes.findings)
    seconds = process_time() - started
    distinct = b"\n".join(dict.fromkeys(nquads.split(b"\n")))
    channel.send(InspectResult(msgspec.structs.replace(transformed, findings=findings), distinct, seconds))


if __name__ == "__main__":
    run(serve)
