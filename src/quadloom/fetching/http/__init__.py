"""HTTP over libcurl.

In: `FetchRequest`s. Out: a `Page` or a `Failure` for each. Imports `fetching`'s guard, DNS, requests and failures.
`transport` is for the crawl, `documents` for single requests; nothing leaves the process past the guard.
"""
