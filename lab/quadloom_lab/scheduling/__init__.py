"""Simulated webs whose every change is known, to compare refresh policies; and the speed of the importance fixpoint.

In: the shape of a web, or a file of real changes. Out: freshness of each policy, tables and plots. Imports
`quadloom.planning.policy` and `quadloom.planning.ranking`.
"""
