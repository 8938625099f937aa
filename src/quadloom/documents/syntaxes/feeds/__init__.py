"""RSS, Atom, JSON Feed, OPML and sitemaps, to one vocabulary.

In: bytes for each module's `extract`, a `Context` for its `read`. Out: N-Quads, or statements, links and dates in the
context. Imports `syntaxes.registry` and the modules below it, `syntaxes.rdf` and `syntaxes.xml`.
"""
