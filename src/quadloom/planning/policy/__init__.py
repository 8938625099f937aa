"""When to read which page: scope, change rates, refresh policies, bandwidth shares, likely data.

In: visits, weights and settings. Out: the time of the next visit and the order of first reads. Pure computation: time
and randomness are arguments, nothing touches network or disk. Imports `model`, `settings` and `errors` only. Read
`docs/explanation/scheduling.md`, then `planner.py`.
"""
