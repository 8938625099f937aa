"""RDFa 1.1 (Core, Lite, HTML+RDFa, XHTML+RDFa, XML, SVG), RDFa 1.0 and `@role`, to statements.

In: bytes with `extract`, or a tree that is already parsed with `annotate` (HTML) and `annotate_xml`.
Out: N-Quads, or statements in a `Sink`. Read order: `hosts`, `names`, `frames`, `processing`, `walking`, `extraction`.
"""

from quadloom.syntaxes.rdfa.extraction import annotate, annotate_xml, extract

__all__ = ["annotate", "annotate_xml", "extract"]
