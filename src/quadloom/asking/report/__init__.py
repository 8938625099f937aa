"""Figures about a warehouse as a whole. In: stores and the report of a crawl. Out: what status, home page and reports
show: totals, a summary of the last crawl, what is special about the data, links between sites.
"""
