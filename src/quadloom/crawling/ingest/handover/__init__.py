"""Phases that run apart. In: pages that other processes or earlier commands have left. Out: work for this process.

`backlog` leases pages from the catalog, `spool` has what others have transformed, `extraction` finds links afterwards.
May import: what `quadloom.crawling.ingest` may.
"""
