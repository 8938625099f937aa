"""Quad stores: Oxigraph on this machine, any SPARQL 1.1 server, and memory.

In: N-Quads of pages. Out: differences, lines, query results. Imports `stores.protocols` and the model; no other engine.
"""
