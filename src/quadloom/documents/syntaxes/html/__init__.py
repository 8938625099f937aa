"""HTML itself: base, head, links, main text, Open Graph; and the tree that all syntaxes of a page share.

In: bytes for `page.extract`, a `Context` for the functions called `read`. Out: N-Quads, or statements, links and facts
in the context. `tree` imports no other module of the package, because `syntaxes.registry` builds on it.
"""
