"""Topical crawling through sites' own search: a broad query finds sites, a narrow one finds pages on each of them.

In: words, types and examples of a topic, and an `Access` that asks for pages politely. Out: relevant pages with scores.
Read `crawl.py` first; `strategies` decide, `channels` know the ways into a site, `results` read answers.
"""
