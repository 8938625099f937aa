"""Crawler traps: which URLs look like one (`shapes.py`), and the hook that refuses them (`filter.py`).

In: the links of a settled batch. Out: the same without traps, and counts by host and reason.
"""
