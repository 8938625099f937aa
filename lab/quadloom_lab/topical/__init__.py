"""Simulated sites with search forms and known relevance, to compare strategies of the topical crawl.

In: a seed, a budget of requests and the strategies. Out: harvest and recall of each, with intervals, and a plot.
Imports `quadloom.crawling.topical`.
"""
