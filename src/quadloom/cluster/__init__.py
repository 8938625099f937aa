"""Many machines: how a worker comes to its shards, keeps them and gives them back.

In: a frontier on a shared database, and the running crawl's own thread to act in. Out: shards taken, drained, lost.
"""
