"""The pages, one module per group: functions `WebRequest → ViewResponse`, whose data is also the page's JSON twin.

In: a request with a view of the warehouse. Out: the template's name and its data. Imports `view`, `server` and `api`.
"""
