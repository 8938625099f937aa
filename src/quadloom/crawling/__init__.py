"""Crawls, from the first URL to indexed pages.

`workers` transform pages, `ingest` writes them, `inspect` reads one page without storing it, `topical` and
`subscriptions` build on both, `run` is the loop and its control, `cluster` divides a crawl between machines, and
`runs.py` starts them all. Each imports only those named before it.
"""
