"""JSON-LD 1.1, by the book for one document and by a fast path for the pages of a crawl.

In: bytes for `extract`, a `Context` for `read` (a document) and `read_scripts` (a page). Out: N-Quads, or statements in
the context's sink and findings. Imports `syntaxes.registry` and the modules below it. Read order: `json`, `terms`,
`definitions`, `context`, `loader`, `expand`, `rdf`, `fast`, `extraction`.
"""

from quadloom.documents.syntaxes.jsonld.extraction import extract, read, read_scripts

__all__ = ["extract", "read", "read_scripts"]
