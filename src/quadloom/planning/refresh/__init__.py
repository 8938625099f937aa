"""When each page is read again, and how a constant bandwidth is spent.

In: settlements of visits, rankings, changes of scope. Out: the time of each page's next visit, and quotas for leases.
May import: ingest.hooks (it is a `SettleHook`), ranking, scheduling, stores, model, settings.
"""
