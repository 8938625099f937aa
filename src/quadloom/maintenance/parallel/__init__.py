"""Bulk work on all cores, or on the machines of a Ray cluster: export, statistics, rebuild.

In: stores, and a runner that does tasks (`quadloom.process.bulk_tasks`). Out: what the same command gives without one.
A task is a range of pages (`ranges`) or a file of the archive, and its result is a file until the job is complete
(`results`), so an interrupted job is resumed. May import: the rest of maintenance, export and below.
"""
