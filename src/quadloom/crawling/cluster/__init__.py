"""Many machines: how a worker gets its shards, keeps them and gives them back.

In: stores on a shared database, and a crawl session to run. Out: shards acquired, drained or lost; workers on Ray.
May import: crawl, ingest, stores, model, settings.
"""
