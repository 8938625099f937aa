"""What is removed for good: superseded versions (prune), and pages and sites on request (forget).

In: a warehouse on which no crawl runs. Out: reports; archive files without the removed records.
May import: maintenance, crawling, asking, stores, model, settings.
"""
