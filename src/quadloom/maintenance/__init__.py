"""Maintenance of a warehouse on which no crawl runs: import, verify, rebuild and prune.

In: open stores, and files to import. Out: reports; indexes and archive in order.
May import: crawling, asking, planning, fetching, stores and what is below them.
"""
