"""Addresses for programs: SPARQL and Graph Store protocols, dumps, events, metrics, control of the crawl, OpenAPI.

In: a `WebRequest`. Out: a response in the format that the client asked for. Imports `view` and `server`, never `pages`.
"""
