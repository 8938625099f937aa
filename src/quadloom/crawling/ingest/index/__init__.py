"""What follows the transaction: settled pages into quads and text, and the acknowledgement that they are there.

In: settled batches (`jobs.py`), or rows of pages to index again (`reindex.py`). Out: both indexes, written in a thread
of its own (`indexer.py`), and marks for the next transaction. All of it is derived data. Imports stores and phases.
"""
