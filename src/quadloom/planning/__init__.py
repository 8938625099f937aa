"""What to read next, and when: `policy` (change rates, refresh policies, shares), `ranking` (what pages are worth),
`refresh` (the time of each page's next visit) and `scope` (which URLs belong to a crawl).

In: visits, links and settings. Out: orders and times. Imports the stores and everything below them.
"""
