"""A running crawl: the loop, its session, its control commands, and what people read about it.

In: stores, settings, a scope, and commands over the control socket. Out: settlements, reports, explanations.
May import: ingest, refresh, ranking, subscriptions, fetching, scheduling, stores, process, model, settings.
"""
