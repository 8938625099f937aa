"""The syntaxes of structured data, one package for each family.

In: bytes for each syntax's `extract(body, *, url, …)`, or a `Context` with the tree parsed once for all for its
`read(context)`. Out: N-Quads, or statements in the context's sink, links, facts and `Finding`s. `installed` is the
table of all syntaxes. Imports `model`, `settings` and `errors` only.
"""
