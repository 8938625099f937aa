"""HTML microdata to RDF, by the W3C note *Microdata to RDF* (second edition).

In: bytes for `extract`, a `Context` for `read`. Out: N-Quads, or statements in the context's sink and findings.
Imports `syntaxes.registry` and the modules below it.
"""

from quadloom.documents.syntaxes.microdata.extraction import extract, read

__all__ = ["extract", "read"]
