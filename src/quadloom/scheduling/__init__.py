"""What to read next, and when again: importance, change rates, refresh policies, shares.

In: links, visits and settings. Out: scores for discovery and times for refresh. Everything here is computation:
time and randomness are arguments, nothing touches the network, and only `LinkMatrix` (in stores) touches the disk.
Read `docs/explanation/scheduling.md`, then `planner.py`.
"""
