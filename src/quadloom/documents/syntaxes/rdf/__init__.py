"""RDF itself: files in the standard syntaxes, stable names for blank nodes, links in data and links as data.

In: bytes for `extract`, a `Context` for `read`, N-Quads for the rest. Out: N-Quads, or statements in the context's sink
and findings. Imports `syntaxes.registry` and the modules below it.
"""

from quadloom.documents.syntaxes.rdf.files import extract
from quadloom.documents.syntaxes.rdf.files import read_document as read

__all__ = ["extract", "read"]
