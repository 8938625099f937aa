"""Microformats, mf2 and classic, to RDF in well-known vocabularies, and to the canonical mf2 JSON.

In: bytes for `extract` and `parse`, a `Context` for `read`. Out: N-Quads, JSON, or statements in the context's sink and
findings. Imports `syntaxes.registry` and the modules below it.
"""

from quadloom.documents.syntaxes.microformats.extraction import ROOT_NAMES, extract, parse, read

__all__ = ["ROOT_NAMES", "extract", "parse", "read"]
