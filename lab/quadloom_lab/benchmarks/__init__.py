"""Benchmarks to run by hand: `python -m quadloom_lab.benchmarks.NAME`, listed in docs/explanation/performance.md.

In: generated pages or the fake web. Out: CPU time per page, often beside other programs in the same run. May import
all of Quadloom and of the lab. Benchmarks that need the servers of the tests are in tests/bench.
"""
