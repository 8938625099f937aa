"""What the phases say of one page: the record that leaves a worker and enters the stores.

Apart from the phases themselves, so that a process that writes it, or reads it again, does not import a parser.
"""

from __future__ import annotations

import msgspec

from quadloom.model.document import FactsCarrier, PushOffer
from quadloom.model.finding import Finding, PageAudit
from quadloom.model.link import Discovery
from quadloom.model.quads import Quads
from quadloom.model.text import TextDocument


class PhaseSeconds(msgspec.Struct, frozen=True, array_like=True):
    """CPU that a page took in the phases that run inside of a worker, transform itself left out."""

    detect: float = 0.0
    extract: float = 0.0


class PageResult(FactsCarrier, frozen=True, array_like=True):
    """All that must be written for one page, computed without touching a store."""

    quads: Quads
    text: TextDocument | None
    text_digest: bytes
    body_digest: bytes
    discoveries: tuple[Discovery, ...] = ()
    edges: bytes = b""  # packed int64 fingerprints of all links, for the link matrix
    links: int = 0
    has_data: bool = False
    findings: tuple[Finding, ...] = ()
    lines: bytes = b""  # `line_fingerprints` of the quads
    link_quads: bytes = b""  # all links as N-Quads, if user queries want them
    push: PushOffer | None = None  # only with `subscriptions.websub`
    audit: PageAudit = PageAudit()
    seconds: PhaseSeconds = PhaseSeconds()
