"""RDFa 1.1 (Core, Lite, HTML+RDFa, XHTML+RDFa, XML, SVG), RDFa 1.0 and `@role`, to statements.

In: bytes for `extract`, a `Context` for `read` (HTML) and `read_xml`. Out: N-Quads, or statements in the context's
sink. Imports `syntaxes.registry` and the modules below it. Read order: `hosts`, `frames`, `names`, `processing`,
`trees`, `expansion`, `extraction`.
"""

from quadloom.documents.syntaxes.rdfa.extraction import extract, read, read_xml

__all__ = ["extract", "read", "read_xml"]
