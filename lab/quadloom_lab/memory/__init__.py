"""Stores in memory that keep the contracts of `quadloom.stores.protocols`, for tests.

In and out: as the protocols say; nothing is written to disk. Imports `quadloom.stores.protocols` and `quadloom.model`.
"""
