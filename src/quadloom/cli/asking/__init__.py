"""Commands that read a warehouse, or one page: search, sparql, show, stats, findings, status, sites, why, inspect.

In: the options of a command. Out: tables, JSON or RDF on stdout. They never write to the warehouse.
"""
