"""Archives of the web.

In: WARC, ARC and WACZ files, and bodies as servers encode them. Out: pages and decoded bodies.
"""
