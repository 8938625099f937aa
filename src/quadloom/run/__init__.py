"""A crawl on one machine: one owner of all stores, one fetcher process, N disposable transform processes.

In: settings, seeds, an open warehouse. Out: settled pages; see `crawl.py` for the loop and `writing.py` for the
order in which things become durable.
"""
