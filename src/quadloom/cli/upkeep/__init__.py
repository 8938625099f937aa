"""Commands around the data: configuration, checks, JSON-LD contexts, export and import, verify, rebuild and prune.

In: the options of a command. Out: files, or changed stores; those that write need a warehouse on which no crawl runs.
"""
