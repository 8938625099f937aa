"""What the databases of the state have in common: nested transactions, and what a page's row holds.

In: records of the seams. Out: rows. Imports `stores.protocols` and the model; no engine.
"""
