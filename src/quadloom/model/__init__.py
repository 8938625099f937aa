"""What flows through the phases: frozen, self-contained records without I/O.

In: nothing. Out: `Url`, `Link`, `Visit`, `Page`, `Document`, `Transformed`, `Finding`, `Settlement`, `Event`. Each
encodes to msgpack (`quadloom.model.wire`), so it can cross a process border or be written to a store. Imports `errors`
only.
"""

from quadloom.model.document import Document, Kind, Transformed
from quadloom.model.finding import Finding
from quadloom.model.link import Discovery, Link
from quadloom.model.outcome import Outcome, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.quads import Quads
from quadloom.model.url import Url
from quadloom.model.visit import Visit

__all__ = [
    "Discovery",
    "Document",
    "Failure",
    "Finding",
    "Kind",
    "Link",
    "Outcome",
    "Page",
    "Quads",
    "Settlement",
    "Transformed",
    "Url",
    "Visit",
]
