"""Other XML: the stylesheets that users, GRDDL and Quadloom itself bring, and a generic mapping.

In: a `Context` for each module's `read`, bytes for `extract`. Out: N-Quads, or statements and links in the context.
Imports `syntaxes.registry` and the modules below it, `syntaxes.feeds.writing` and `syntaxes.rdf`.
"""
