"""The embedded state: frontier, catalog and outbox in one file, written by one process.

In: what the seams say. Out: rows of `quadloom.db`. Imports `stores.protocols`, `stores.frontier` and the rows that
catalogs have in common; no other engine.
"""
