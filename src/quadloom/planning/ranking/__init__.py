"""What pages are worth: importance and usefulness, computed from the links between pages.

In: the links of each page read (`PageRanker.append`). Out: a `PageRank` per page (`PageRanker.weigh`). Needs numpy and
scipy; imports `model`, `process`, `settings` and `errors`. Start with `ranker.py`.
"""
