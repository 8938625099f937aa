"""Commands that crawl, or change what a crawl does: crawl, worker, topic, seeds, scope, subscribe, changes and control.

In: the options of a command. Out: a crawl in this process, or a request to the one that runs on the warehouse.
"""
