"""Strategies of a topical crawl: what to request next.

In: a `TopicalRun` (topic, budget, results so far) and the seed sites. Out: request sequences, one at a time per host.
Import `search` and the modules beside this package; nothing here sends a request itself.
"""
