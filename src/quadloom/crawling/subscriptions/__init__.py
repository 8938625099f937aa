"""Subscriptions of users, notices of changes for them, and subscriptions to the hubs of others (WebSub).

In: settlements of visits, answers of standing queries, messages from hubs. Out: notices in the outbox, webhooks, feeds.
May import: ingest (hooks, inbox), asking, fetching, phases, stores, process, model, settings.
"""
