"""Quad stores: Oxigraph on this machine, or any SPARQL 1.1 server.

In: N-Quads of pages. Out: differences, lines, query results. Imports `stores.protocols` and the model; no other engine.
"""
