"""The five phases as functions X → Y: fetch, detect, transform, index, extract.

In: a `Visit`. Out: statements, words and links. I/O happens only in fetch and in the stores that index writes to.
"""
