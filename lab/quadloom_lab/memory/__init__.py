"""Doubles of the seams in memory: the reference of the contract suites, and stores for tests.

In and out: as `quadloom.stores.protocols` says. Imports the seams, and the rules that all backends share.
"""
