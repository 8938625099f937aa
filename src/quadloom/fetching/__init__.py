"""Fetching: politely, within limits and behind a guard.

In: `Visit`s that the frontier leased. Out: `FetchResult`s, each a `Page` or a `Failure` with the pace of its host.
Imports `stores`, `process`, `model` and below.

Read `transport` (the seam), `fetcher` (the politeness engine), `unit` (thread or process that runs it), then the
transports: `http/`, `replay`, `in_process`.
"""
