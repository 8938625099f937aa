"""The state of many machines, and a text index, on one PostgreSQL server.

In: what the seams say. Out: rows. Imports `stores.protocols`, `stores.frontier`, `stores.text_query` and the rows that
catalogs have in common; no other engine. The driver is imported with the first connection.
"""
