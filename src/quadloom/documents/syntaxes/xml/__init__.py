"""Other XML: the stylesheets of users, of GRDDL and of Quadloom itself, and a generic mapping.

In: a `Context` for each module's `read`, bytes for `extract`. Out: N-Quads, or statements and links in the context.
Imports `syntaxes.registry` and the modules below it, `syntaxes.feeds.writing` and `syntaxes.rdf`.
"""
