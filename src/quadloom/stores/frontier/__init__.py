"""The rules that every frontier has in common, over the tables of any database.

In: discoveries, settlements. Out: visits. `frontier` decides and `leasing` hands out. Both use a database only through
the statements of `stores.sql`. Imports model, settings and `stores.protocols`.
"""
