"""Topical crawling through the search of sites: a broad query finds sites, a narrow one finds pages on each of them.

In: words, types and examples of a topic, and an `Access` that sends requests politely. Out: relevant pages with scores.
May import `ingest`, `scheduling`, `fetching`, `stores` and everything below them. Read `crawl.py` first: `strategies/`
decide, `search/` knows how to query a site and reads the answers, `forms/` finds search forms.
"""
