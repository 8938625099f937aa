"""Maintenance of a warehouse on which no crawl runs: import, verify, rebuild and prune.

In: open stores, and files to import. Out: reports; indexes and archive in order.
May import: ingest, export, asking, workers, phases, stores, model, settings.
"""
