"""The rules that every frontier has in common, over the tables of any database.

In: discoveries, settlements. Out: visits. Imports model, settings and `stores.protocols`; a database comes in through
the three Protocols of `tables`.
"""
