"""The phases between fetch and the stores, as functions X → Y: detect, transform, index, extract.

In: a `Page` and its `Visit`. Out: `Transformed`, `Quads`, words and `Discovery`s, all without I/O, except that
`loaders` gives transform what a page refers to. Imports `syntaxes`, `fetching`, `model` and the records of
`stores.protocols`.
"""
