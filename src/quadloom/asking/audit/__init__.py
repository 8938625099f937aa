"""The audit of a warehouse: what is wrong with the data of its sites, grouped so that a person can act on it.

In: the rows of the catalog, the quads, the archive. Out: an `AuditReport`, and the same as SARIF, JUnit or one HTML
file. May import: checks, stores and below.
"""
