"""The fetch layer: politely, within limits and behind a guard.

In: `Visit`s that the frontier leased. Out: `FetchResult` (a `Page` or `Failure`, plus the `HostPace` it taught).
`fetcher.Fetcher` composes the parts for a crawl; `transport.DocumentFetcher` is the same client for single requests
(contexts, stylesheets, sitemaps, webhooks), so that nothing leaves the process past the guard.
Read in this order: guard, dns, content_coding, request, transfer, multi, client, robots, politeness, fetcher.
"""
