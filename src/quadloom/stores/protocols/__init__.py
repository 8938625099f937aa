"""The seams: what the pipeline demands of a store, one file each, with the records that pass through it.

One contract suite per Protocol is in tests/contract/ and runs on every backend. A backend may promise more, never
less. Time is always an argument (`now`, unix seconds), so every schedule can be tested by simulation.

Write order (docs/explanation/durability.md): archive records are fsynced first, then ONE transaction settles
frontier and catalog, then quads and text follow; their digests in the catalog say how far they got.
"""
